// Finds a Chromium, and installs Debian's where that is possible.
import { accessSync, constants } from "node:fs";
import { execFileSync } from "node:child_process";
import { delimiter, join } from "node:path";

function find() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]) {
    for (const folder of process.env.PATH.split(delimiter)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // not there
      }
    }
  }
  return null;
}

export function chromiumPath() {
  let path = find();
  if (path) return path;
  if (process.getuid?.() === 0) {
    try {
      execFileSync("apt-get", ["update"], { stdio: "ignore" });
      execFileSync("apt-get", ["install", "--yes", "--no-install-recommends", "chromium"], { stdio: "inherit" });
      path = find();
    } catch {
      // said below
    }
  }
  if (!path) throw new Error("there is no Chromium: install it (apt-get install chromium), or name it in CHROMIUM");
  return path;
}
