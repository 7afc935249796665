// How numbers are written. What isn't known is a dash.
"use strict";

const unknown = "–";

function count(n) {
  if (n === null || n === undefined) return unknown;
  if (n >= 1e6) return (n / 1e6).toFixed(n >= 1e7 ? 0 : 1) + " M";
  if (n >= 1e4) return (n / 1e3).toFixed(0) + " k";
  return Number.isInteger(n) ? String(n) : n.toFixed(1);
}

function percent(ratio) {
  if (ratio === null || ratio === undefined) return unknown;
  const p = 100 * ratio;
  return (p > 0 && p < 9.95 ? p.toFixed(1) : p.toFixed(0)) + " %";
}

function seconds(s) {
  if (s === null || s === undefined) return unknown;
  if (s === 0) return "0";
  if (s < 0.0995) return Math.max(1, s * 1e3).toFixed(0) + " ms";
  if (s < 0.9995) return (s * 1e3).toFixed(0) + " ms";
  if (s < 100) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 6000) return (s / 60).toFixed(0) + " min";
  return (s / 3600).toFixed(0) + " h";
}

function clock(time) {
  return new Date(time).toLocaleTimeString([], { hour12: false });
}
