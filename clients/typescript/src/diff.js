// Changes of files for people: hunks, lines with their numbers, and the words that have changed. A diff that is no diff
// has no hunks, and one that is too long is cut and says so.

import { changes as changesOf } from "./queue.js";
import { get } from "./shapes.js";

/** The most lines of a file that are shown. */
export const MOST_LINES = 20_000;
/** The most words of a line that are compared. */
const MOST_WORDS = 400;
/** The most pairs of words that are compared for one file; later lines have no marks. */
const MOST_PAIRS = 20_000_000;

const fileDiff = (path, kind = "update", movedTo = null) => ({
  path,
  kind,
  movedTo,
  hunks: [],
  added: 0,
  removed: 0,
  isCut: false,
});

/** The changes of an item of the kind `fileChange`. */
export const ofItem = (members) => ofChanges(get(members, "changes"));

/** The changes that a question is about. The newer one names the item that has them. */
export function ofQuestion(question, thread) {
  const changes = changesOf(question.params);
  if (changes.length > 0) return ofChanges(changes);
  const id = get(question.params, "itemId");
  for (const { items } of [...thread.turns].reverse()) {
    const item = items.find((one) => one.id === id);
    if (item) return ofItem(item.members);
  }
  return [];
}

/** The changes of a diff of several files, such as that of a turn. */
export function ofText(diff) {
  const parts = diff.split(/^(?=diff --git )/m).filter((part) => part.startsWith("diff --git "));
  return parts.map(ofFile).filter((file) => file !== undefined);
}

/** A text without the quotes at its ends. */
function withoutQuotes(text) {
  let [start, end] = [0, text.length];
  while (text[start] === '"') start += 1;
  while (end > start && text[end - 1] === '"') end -= 1;
  return text.slice(start, end);
}

function ofFile(text) {
  const head = text.split("\n@@ ", 1)[0].split("\n");
  const named = (mark, side) => {
    const line = head.find((one) => one.startsWith(mark));
    const name = line && withoutQuotes(line.slice(mark.length).trimEnd());
    if (name === undefined || name === "/dev/null") return undefined;
    return name.startsWith(side) ? name.slice(side.length) : name;
  };
  const [old, now] = [named("--- ", "a/"), named("+++ ", "b/")];
  if (old === undefined && now === undefined) {
    const path = named("rename from ", "");
    return path === undefined ? undefined : unified(text, fileDiff(path, "update", named("rename to ", "") ?? null));
  }
  if (old === undefined) return unified(text, fileDiff(now, "add"));
  if (now === undefined) return unified(text, fileDiff(old, "delete"));
  return unified(text, fileDiff(old, "update", old === now ? null : now));
}

function ofChanges(changes) {
  const read = (change) => {
    const [path, told] = [get(change, "path"), get(change, "kind")];
    if (typeof path !== "string") return [];
    const text = typeof get(change, "diff") === "string" ? change.diff : "";
    const kind = get(told, "type") ?? told;
    if (kind === "add" || kind === "delete") return [whole(text, fileDiff(path, kind))];
    const moved = ["move_path", "movePath"].map((name) => get(told, name)).find((name) => typeof name === "string");
    return [unified(text, fileDiff(path, "update", moved ?? null))];
  };
  return (Array.isArray(changes) ? changes : []).flatMap(read);
}

function linesOf(text) {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const lineOf = (side, old, now, text) => ({
  side,
  old: side === "new" ? null : old,
  new: side === "old" ? null : now,
  text,
  changed: [],
});

/** A file that is new or gone. Some releases report it as a diff. */
function whole(text, file) {
  if (text.startsWith("@@ ") || text.startsWith("--- ")) return unified(text, file);
  const lines = linesOf(text);
  const side = file.kind === "add" ? "new" : "old";
  [file.added, file.removed] = file.kind === "add" ? [lines.length, 0] : [0, lines.length];
  file.isCut = lines.length > MOST_LINES;
  const shown = lines.slice(0, MOST_LINES).map((line, at) => lineOf(side, at + 1, at + 1, line));
  if (shown.length > 0) file.hunks = [{ heading: "", lines: shown }];
  return file;
}

const SIDES = new Map([
  ["+", "new"],
  ["-", "old"],
  [" ", "both"],
  ["", "both"],
]);

function unified(text, file) {
  let [old, now, shown] = [1, 1, 0];
  for (const line of linesOf(text)) {
    const head = /^@@(.*?)@@(.*)/.exec(line);
    if (head) {
      [old, now] = [start(head[1], /(?:^|\s)-(\d{1,9})/), start(head[1], /(?:^|\s)\+(\d{1,9})/)];
      file.hunks.push({ heading: head[2].trim(), lines: [] });
      continue;
    }
    const side = SIDES.get(line.slice(0, 1));
    if (file.hunks.length === 0 || side === undefined) continue;
    if (side === "new") file.added += 1;
    if (side === "old") file.removed += 1;
    if (shown < MOST_LINES) file.hunks.at(-1).lines.push(lineOf(side, old, now, line.slice(1)));
    shown += 1;
    if (side !== "new") old += 1;
    if (side !== "old") now += 1;
  }
  file.isCut = shown > MOST_LINES;
  let pairs = MOST_PAIRS;
  for (const { lines } of file.hunks) pairs = markWords(lines, pairs);
  return file;
}

function start(numbers, pattern) {
  const found = pattern.exec(numbers);
  return found ? Number(found[1]) : 1;
}

/** Marks the words that differ between lines that were removed and the lines that replace them. */
function markWords(lines, pairs) {
  const count = (from, side) => {
    let end = from;
    while (end < lines.length && lines[end].side === side) end += 1;
    return end - from;
  };
  for (let place = 0; place < lines.length; ) {
    const removed = count(place, "old");
    const added = removed > 0 ? count(place + removed, "new") : 0;
    for (let pair = 0; pair < Math.min(removed, added); pair += 1) {
      const [before, after] = [lines[place + pair], lines[place + removed + pair]];
      const [old, now] = [wordsOf(before.text), wordsOf(after.text)];
      pairs -= old.length * now.length;
      if (pairs >= 0 && Math.max(old.length, now.length) <= MOST_WORDS) markPair(before, after, old, now);
    }
    place += Math.max(removed + added, 1);
  }
  return pairs;
}

/** The words of a line, its white space, and each other character. */
const wordsOf = (line) =>
  [...line.matchAll(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu)].map((match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
  }));

/** Marks two lines, unless they have so little in common that marks would not help. */
function markPair(before, after, old, now) {
  const kept = common(old, now);
  const same = kept.reduce((sum, [at]) => sum + old[at].text.trim().length, 0);
  if (same * 3 < Math.max(before.text.trim().length, after.text.trim().length)) return;
  let [atOld, atNow] = [0, 0];
  for (const [nextOld, nextNow] of [...kept, [old.length, now.length]]) {
    if (nextOld > atOld) before.changed.push([old[atOld].start, old[nextOld - 1].end]);
    if (nextNow > atNow) after.changed.push([now[atNow].start, now[nextNow - 1].end]);
    [atOld, atNow] = [nextOld + 1, nextNow + 1];
  }
}

/** The places of the longest common sequence of words. */
function common(old, now) {
  const width = now.length + 1;
  const longest = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      longest[at] =
        old[i].text === now[j].text ? longest[at + width + 1] + 1 : Math.max(longest[at + width], longest[at + 1]);
    }
  }
  const places = [];
  for (let [i, j] = [0, 0]; i < old.length && j < now.length; ) {
    if (old[i].text === now[j].text) places.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return places;
}
