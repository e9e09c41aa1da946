/** Cuts chunks into lines without decoding them; a line that spans chunks is joined once, when its end arrives. */
const NEWLINE = 10

export function lineReader(onLines: (lines: Buffer[]) => void): (chunk: Buffer) => void {
  let held: Buffer[] = []
  return chunk => {
    const lines: Buffer[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end)
      lines.push(held.length === 0 ? piece : Buffer.concat([...held, piece]))
      held = []
      start = end + 1
    }
    if (start < chunk.length) held.push(chunk.subarray(start))
    if (lines.length > 0) onLines(lines)
  }
}
