/**
 * Text that callers and servers chose, as whoever answers for a gateway reads it: on one line, in which nothing moves the cursor, runs
 * backwards or cannot be seen. What is not plain is written as JSON escapes it, so that nothing is lost either.
 */

/** Control and format characters, separators other than the space, and what stands for half a character. */
const unplain = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0]/gu

function escaped(char: string): string {
  let text = ''
  for (let i = 0; i < char.length; i++) text += `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`
  return text
}

/** A name or sentence, without quotation marks. */
export function shownText(text: string): string {
  return text.replace(unplain, escaped)
}

/** A value, exactly as it was sent. */
export function shownJson(value: unknown): string {
  return shownText(JSON.stringify(value) ?? 'null')
}
