// Owns what must not stand in a text that is shown: what reorders it, and what cannot be seen, as on the command line.

const INSTEAD = "\uFFFD";
const STEERING = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029]/gu;
const REORDERING = /[\u202A-\u202E\u2066-\u2069]/gu;
const UNSEEN = /[\u00AD\u180E\u200B\u2060-\u2065\u206A-\u206F\uFEFF\uFFF9-\uFFFB]/gu;
const TAGS = /(\u{1F3F4}[\u{E0030}-\u{E007A}]{3,6}\u{E007F})|[\u{E0000}-\u{E007F}]/gu; // the first is a flag
const JOINERS = /(?<![^\u0000-\u007F\u200C\u200D])[\u200C\u200D]/gu; // behind nothing that joins
const MARKS = /[\u061C\u200E\u200F]/gu;
const LEFTWARD = /[\u0590-\u061B\u061D-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;
const PLAIN = /^[\t\n\x20-\x7e]*$/;

// The same text for whoever reads it; the words of scripts that run from right to left, and emoji, stay as they are.
export function harmless(text) {
  if (PLAIN.test(text)) return text;
  let shown = text.replaceAll("\r\n", "\n").replace(STEERING, INSTEAD);
  shown = shown.replace(REORDERING, INSTEAD).replace(UNSEEN, INSTEAD);
  shown = shown.replace(TAGS, (_, flag) => flag ?? INSTEAD).replace(JOINERS, INSTEAD);
  return LEFTWARD.test(shown) ? shown : shown.replace(MARKS, INSTEAD);
}
