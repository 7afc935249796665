// Simulated engines and a Caddy in front of them, on free loopback ports.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

export const root = resolve(import.meta.dirname, "../..");
const bin = (name) => join(root, "bin", name);

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

function start(name, args, options = {}) {
  return spawn(bin(name), args, { stdio: ["ignore", "pipe", "inherit"], ...options });
}

async function stop(child) {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill("SIGTERM");
    await once(child, "exit");
  }
}

export class Gateway {
  // start has so many engines listen, and a Caddy in front of the first three.
  static async start(engines) {
    const g = new Gateway();
    g.folder = mkdtempSync(join(tmpdir(), "status-page-"));
    g.sims = start("vllmsim", ["--listen", "127.0.0.1:0", "--count", String(engines), "--preset", "llama3.1-8b-h100"]);
    g.addresses = [];
    for await (const line of createInterface({ input: g.sims.stdout })) {
      const found = /listening on http:\/\/(\S+)/.exec(line);
      if (found) g.addresses.push(found[1]);
      if (g.addresses.length === engines) break;
    }
    if (g.addresses.length < engines) throw new Error("the simulators ended");
    g.sims.stdout.resume();
    g.port = await freePort();
    g.admin = await freePort();
    g.url = `http://127.0.0.1:${g.port}`;
    g.caddy = start("caddy", ["run", "--config", "-", "--adapter", "caddyfile"], {
      stdio: ["pipe", "ignore", "ignore"],
      env: { ...process.env, XDG_CONFIG_HOME: g.folder, XDG_DATA_HOME: g.folder, HOME: g.folder },
    });
    g.caddy.stdin.end(g.caddyfile(3));
    await g.until(async () => (await fetch(g.url + "/llm/state.json")).ok, "Caddy answers");
    return g;
  }

  caddyfile(engines) {
    return `{
	admin 127.0.0.1:${this.admin}
	persist_config off
	auto_https off
}
http://:${this.port} {
	bind 127.0.0.1
	handle_path /llm/* {
		llm_status
	}
	reverse_proxy ${this.addresses.slice(0, engines).join(" ")} {
		lb_policy llm_prefix
	}
}
`;
  }

  // reload has Caddy stand in front of so many engines.
  async reload(engines) {
    const admin = `http://127.0.0.1:${this.admin}`;
    const answer = await fetch(admin + "/load", {
      method: "POST", headers: { "Content-Type": "text/caddyfile", Origin: admin }, body: this.caddyfile(engines),
    });
    if (!answer.ok) throw new Error(`reloading: ${answer.status} ${await answer.text()}`);
  }

  async chat(content, stream = true) {
    const models = await (await fetch(this.url + "/v1/models")).json();
    const answer = await fetch(this.url + "/v1/chat/completions", {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ model: models.data[0].id, stream, max_tokens: 8, messages: [{ role: "user", content }] }),
    });
    await answer.text();
    if (!answer.ok) throw new Error(`chat: ${answer.status}`);
  }

  // replay sends recorded conversations through the gateway.
  replay(...args) {
    return new Promise((done, fail) => {
      const child = start("llmreplay", ["live", "--url", this.url, "--trace", join(root, "testdata/conversations/support.jsonl"), ...args], { stdio: "ignore" });
      child.on("exit", (code) => (code === 0 ? done() : fail(new Error(`llmreplay ended with ${code}`))));
    });
  }

  async until(ready, what) {
    for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((r) => setTimeout(r, 100))) {
      try {
        if (await ready()) return;
      } catch {
        // not yet
      }
    }
    throw new Error(`waiting until ${what}: gave up after 30 s`);
  }

  // stopCaddy returns how long that took, milliseconds.
  async stopCaddy() {
    const began = Date.now();
    await stop(this.caddy);
    return Date.now() - began;
  }

  async stop() {
    await stop(this.caddy);
    await stop(this.sims);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
