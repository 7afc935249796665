// The page: one report a second, by server-sent events while they come and by
// state.json where they don't.
"use strict";

const $ = (id) => document.getElementById(id);
const columns = {
  address: (u) => u.address,
  state: (u) => u.state,
  prefill: (u) => u.inflight_requests.prefill,
  decode: (u) => u.inflight_requests.decode,
  waiting: (u) => u.waiting_requests,
  running: (u) => u.running_requests,
  kv: (u) => u.kv_usage_ratio,
  age: (u) => u.scrape_age_seconds,
  wait: (u) => u.predicted_wait_seconds,
  rate: (u) => u.prefill_tokens_per_second,
  predicted: (u) => u.cached.predicted_ratio,
  told: (u) => u.cached.actual_ratio,
  share: (u) => u.share_ratio,
  reasons: (u) => u.decisions,
  load: (u) => (u.waiting_requests === null ? null : u.waiting_requests + u.running_requests),
};
const written = {
  prefill: count, decode: count, waiting: count, running: count, kv: percent, age: seconds,
  wait: seconds, rate: (n) => (n ? count(Math.round(n)) : unknown), predicted: percent, told: percent, share: percent,
};

let report = null, chosen = "", paused = false, sort = { key: "", down: false };
let source = null, poll = 0;

function show() {
  if (!report) return;
  setText($("clock"), clock(report.time));
  chooseState();
  const state = report.states.find((s) => s.name === chosen);
  if (!state) {
    advise(["No state is known: no loaded configuration has lb_policy llm_prefix."]);
    $("upstreams").tBodies[0].replaceChildren();
    $("decisions").tBodies[0].replaceChildren();
    return;
  }
  advise(state.advice);
  tiles(state);
  upstreams(state);
  decisions(state);
}

function chooseState() {
  const names = report.states.map((s) => s.name), select = $("state");
  if (!names.includes(chosen)) chosen = names[0] || "";
  $("choose").hidden = names.length < 2;
  if (names.join("\n") !== [...select.options].map((o) => o.value).join("\n")) {
    select.replaceChildren(...names.map((name) => new Option(name, name)));
  }
  select.value = chosen;
}

function advise(list) {
  const box = $("advice");
  box.hidden = list.length === 0;
  // A live region is only touched when it has something new to say.
  if (list.join("\n") !== [...box.children].map((li) => li.textContent).join("\n")) {
    box.replaceChildren(...list.map((text) => {
      const li = document.createElement("li");
      li.textContent = text;
      return li;
    }));
  }
}

function tile(id, big, quiet) {
  const [b, q] = $(id).querySelectorAll("p");
  setText(b, big);
  setText(q, quiet);
  return $(id).querySelector("svg");
}

function tiles(s) {
  const c = s.cached, f = s.first_token, told = c.actual_ratio !== null;
  line(tile("tile-cached", percent(told ? c.actual_ratio : c.predicted_ratio),
    told ? `predicted ${percent(c.told_predicted_tokens / c.told_prompt_tokens)}, of ${count(c.told_prompt_tokens)} tokens`
      : c.prompt_tokens ? `predicted, of ${count(c.prompt_tokens)} tokens; no answer tells` : "no prompts yet"), s.series.cached_ratio, 1);
  line(tile("tile-first", seconds(f.actual_mean_seconds),
    f.count ? `predicted ${seconds(f.predicted_mean_seconds)}, of ${count(f.count)} streams` : "no streamed answers yet"), s.series.first_token_mean_seconds);
  const last = s.series.decisions.slice(-7, -1), rate = last.reduce((a, b) => a + b, 0) / (last.length * s.step_seconds);
  bars(tile("tile-rate", `${count(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))}/s`,
    `${count(s.decisions)} in five minutes` + (s.failed ? `, ${count(s.failed)} failed` : "")), s.series.decisions);
  const why = $("tile-why"), legend = why.querySelector(".legend");
  stack(why.querySelector(".stack"), s.reasons);
  const words = reasonOrder.filter((r) => s.reasons[r]);
  while (legend.childElementCount > words.length) legend.lastElementChild.remove();
  words.forEach((r, i) => {
    let li = legend.children[i];
    if (!li) {
      li = legend.appendChild(document.createElement("li"));
      li.append(document.createElement("i"), document.createElement("span"));
    }
    setClass(li.firstElementChild, r);
    setText(li.lastElementChild, `${r} ${percent(s.reasons[r] / s.decisions)}`);
  });
}

function upstreams(s) {
  const wanted = $("filter").value.trim().toLowerCase();
  const all = s.upstreams.filter((u) => !wanted || `${u.address} ${u.state} ${u.engine || ""}`.toLowerCase().includes(wanted));
  if (sort.key) {
    const value = columns[sort.key], way = sort.down ? -1 : 1;
    all.sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === y) return 0;
      if (x === null || y === null) return x === null ? 1 : -1; // the unknown comes last
      return x < y ? -way : way;
    });
  }
  const well = s.upstreams.filter((u) => ["ok", "cold", "unscraped"].includes(u.state)).length;
  setText($("counted"), `${well} of ${s.upstreams.length} well` + (wanted ? `, ${all.length} shown` : ""));
  // A hint has a row of its own, below the first of the rows that it is for.
  const items = all.flatMap((u, i) => {
    const said = i > 0 && all[i - 1].hint === u.hint;
    return u.hint && !said ? [{ u, hinted: true }, { u, hint: u.hint }] : [{ u }];
  });
  rows($("upstreams").tBodies[0], items, (item) => (item.hint ? "hint " : "") + item.u.address, makeUpstream, fillUpstream);
}

function makeUpstream(item) {
  if (item.hint) {
    const row = document.createElement("tr");
    row.className = "hint";
    row.insertCell().colSpan = Object.keys(columns).length;
    return row;
  }
  const row = document.createElement("tr");
  for (const key of Object.keys(columns)) {
    const cell = document.createElement(key === "address" ? "th" : "td");
    row.append(cell);
    if (key === "address") {
      cell.scope = "row";
    } else if (key === "reasons") {
      cell.className = "reasons";
      cell.append(document.createElement("div"), document.createElement("span"));
      cell.firstElementChild.className = "stack";
      cell.lastElementChild.className = "visually-hidden";
    } else if (key === "load") {
      cell.className = "sparkcell";
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("class", "spark");
      svg.setAttribute("viewBox", "0 0 90 17");
      svg.setAttribute("role", "img");
      cell.append(svg);
    } else if (written[key]) {
      cell.className = "n";
    }
  }
  return row;
}

function fillUpstream(row, item) {
  const u = item.u;
  if (item.hint) {
    setText(row.cells[0], item.hint);
    return;
  }
  setClass(row, item.hinted ? "hinted" : "");
  Object.keys(columns).forEach((key, i) => {
    const cell = row.cells[i];
    if (written[key]) {
      setText(cell, written[key](columns[key](u)));
    } else if (key === "address") {
      setText(cell, u.address);
      cell.title = u.engine || "";
    } else if (key === "state") {
      setText(cell, u.state);
      setClass(cell, `state s-${u.state}`);
      cell.title = u.hint;
    } else if (key === "reasons") {
      stack(cell.firstElementChild, u.reasons);
      const words = reasonOrder.filter((r) => u.reasons[r]).map((r) => `${r} ${u.reasons[r]}`).join(", ") || "none";
      setText(cell.lastElementChild, words);
      cell.title = words;
    } else {
      line(cell.firstElementChild, u.series.load_requests, 4);
      const known = u.series.load_requests.filter((p) => p !== null);
      cell.firstElementChild.setAttribute("aria-label", known.length ? `at most ${count(Math.max(...known))} requests` : "unknown");
    }
  });
}

function decisions(s) {
  rows($("decisions").tBodies[0], s.last_decisions, (d) => String(d.number), () => {
    const row = document.createElement("tr");
    for (let i = 0; i < 12; i++) row.append(document.createElement("td"));
    for (const i of [3, 4]) row.cells[i].className = "hash";
    for (const i of [5, 6, 7, 8, 9, 10]) row.cells[i].className = "n";
    return row;
  }, (row, d) => [
    clock(d.time), d.upstream, d.attempt > 1 ? `${d.reason}, attempt ${d.attempt}` : d.reason,
    (d.first_block || unknown).slice(0, 8), (d.prompt || unknown).slice(0, 8),
    count(d.prompt_tokens), count(d.matched_tokens), count(d.cached_tokens),
    seconds(d.predicted_first_token_seconds), seconds(d.first_token_seconds), seconds(d.duration_seconds),
    d.outcome.replace("_", " "),
  ].forEach((text, i) => setText(row.cells[i], text)));
}

function take(text) {
  connected("live", "live");
  if (paused) return;
  report = JSON.parse(text);
  show();
}

function connected(how, words) {
  setClass(document.body, how);
  setText($("connected"), paused ? "paused" : words);
}

// open listens for reports. The browser reconnects by itself, as after a reload
// of Caddy's configuration; where it gives up, state.json is asked instead.
function open() {
  close();
  source = new EventSource("events");
  source.onmessage = (event) => take(event.data);
  source.onerror = () => {
    connected("lost", "reconnecting");
    if (source && source.readyState === EventSource.CLOSED) {
      close();
      ask();
    }
  };
}

function close() {
  if (source) source.close();
  source = null;
  clearTimeout(poll);
}

async function ask() {
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    take(await answer.text());
  } catch {
    connected("lost", "no connection");
  }
  // Streams are few; one may be free again.
  poll = setTimeout(open, 5000);
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
$("filter").addEventListener("input", show);
$("state").addEventListener("change", (event) => { chosen = event.target.value; show(); });
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  connected(document.body.className, "live");
});
for (const head of document.querySelectorAll("#upstreams .columns th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const key = head.dataset.key, words = key === "address" || key === "state";
    if (sort.key === key) sort.down = !sort.down;
    else sort = { key, down: !words }; // the largest number first
    for (const other of document.querySelectorAll("#upstreams [aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
    show();
  });
}
open();
