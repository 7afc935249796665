// Small drawings and the reuse of elements: what didn't change is left alone,
// so that selection, focus and screen readers are not disturbed.
"use strict";

const reasonOrder = ["prefix", "load", "cold", "session", "retry", "probe", "fallback"];

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

// line draws known points; a gap stays a gap. high is the top of the scale.
function line(svg, points, high) {
  const { width, height } = svg.viewBox.baseVal;
  const top = Math.max(high || 0, ...points.map((p) => p || 0)) || 1;
  let d = "", pen = false;
  points.forEach((p, i) => {
    if (p === null) { pen = false; return; }
    const x = points.length > 1 ? (i * width) / (points.length - 1) : 0;
    const y = height - 1 - (p / top) * (height - 2);
    d += (pen ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
    // A lone point is a dash.
    if (!pen && (i + 1 >= points.length || points[i + 1] === null)) d += "h2";
    pen = true;
  });
  const path = svg.firstElementChild || svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
  if (path.getAttribute("d") !== d) path.setAttribute("d", d);
}

function bars(svg, points) {
  const { width, height } = svg.viewBox.baseVal;
  const top = Math.max(1, ...points), step = width / points.length;
  while (svg.childElementCount < points.length) svg.appendChild(document.createElementNS(svg.namespaceURI, "rect"));
  points.forEach((p, i) => {
    const bar = svg.children[i], h = (p / top) * height;
    bar.setAttribute("x", (i * step).toFixed(1));
    bar.setAttribute("width", (step * 0.8).toFixed(1));
    bar.setAttribute("y", (height - h).toFixed(1));
    bar.setAttribute("height", h.toFixed(1));
  });
}

// stack draws the reasons side by side.
function stack(box, reasons) {
  reasonOrder.forEach((reason, i) => {
    const part = box.children[i] || box.appendChild(document.createElement("span"));
    setClass(part, reason);
    part.hidden = !reasons[reason];
    part.style.flexGrow = String(reasons[reason] || 0);
  });
}

// rows makes a table body have one row for each item, found again by key.
function rows(body, items, key, make, fill) {
  const old = new Map();
  for (const row of body.rows) old.set(row.dataset.key, row);
  let place = body.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let row = old.get(k);
    if (row) {
      old.delete(k);
    } else {
      row = make(item);
      row.dataset.key = k;
    }
    if (row === place) place = place.nextElementSibling;
    else body.insertBefore(row, place);
    fill(row, item);
  }
  for (const row of old.values()) row.remove();
}
