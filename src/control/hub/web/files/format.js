// format.js - numbers and times, as people read them.

export function rtt(us) {
  if (!us)
    return "–";
  if (us < 1000)
    return `${us} µs`;
  return us < 100000 ? `${(us / 1000).toFixed(us < 10000 ? 2 : 1)} ms` : `${Math.round(us / 1000)} ms`;
}

/** Parts in a million; undefined: it is not known. */
export function loss(ppm) {
  if (!ppm)
    return ppm === 0 ? "0 %" : "–";
  const percent = ppm / 10000;
  return `${percent < 0.01 ? percent.toFixed(4) : percent < 1 ? percent.toFixed(2) : percent.toFixed(1)} %`;
}

/** Bytes a second. */
export function rate(bytes) {
  if (!bytes)
    return "–";
  const units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
  let i = 0;
  for (; bytes >= 1000 && i < units.length - 1; i++)
    bytes /= 1000;
  return `${bytes < 10 && i > 0 ? bytes.toFixed(2) : bytes < 100 && i > 0 ? bytes.toFixed(1)
    : Math.round(bytes)} ${units[i]}`;
}

export function span(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  if (seconds < 90)
    return `${seconds} s`;
  if (seconds < 5400)
    return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600)
    return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

export function now() {
  return Date.now() / 1000;
}

export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], {hour12: false});
}

export function date(seconds) {
  const d = new Date(seconds * 1000);
  return `${d.toLocaleDateString("sv-SE")} ${d.toLocaleTimeString([], {hour12: false})}`;
}

/** "since 14:02:10, for 24 s" */
export function since(seconds) {
  const age = now() - seconds;
  return `since ${age < 43200 ? clock(seconds) : date(seconds)}, for ${span(age)}`;
}

export function plural(n, one, many) {
  return `${n} ${n === 1 ? one : many || `${one}s`}`;
}
