/** The difference of two texts, line by line: what was removed, added and kept. */

export interface DiffLine {
  readonly sign: ' ' | '-' | '+'
  readonly text: string
}

/** Beyond this many cells of the table the texts are shown one after the other. */
const mostCells = 4_000_000

/** Lines of `before` and `after` by their longest common subsequence. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++
  const kept = (lines: readonly string[]) => lines.map(text => ({ sign: ' ', text }) as const)
  return [
    ...kept(old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...kept(old.slice(old.length - tail)),
  ]
}

function middle(old: readonly string[], now: readonly string[]): readonly DiffLine[] {
  const removed = old.map(text => ({ sign: '-', text }) as const)
  const added = now.map(text => ({ sign: '+', text }) as const)
  if (old.length * now.length > mostCells || old.length === 0 || now.length === 0) return [...removed, ...added]
  const width = now.length + 1
  const common = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const here = i * width + j
      common[here] =
        old[i] === now[j] ? 1 + (common[here + width + 1] ?? 0) : Math.max(common[here + width] ?? 0, common[here + 1] ?? 0)
    }
  }
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length && j < now.length) {
    const here = i * width + j
    if (old[i] === now[j]) {
      lines.push({ sign: ' ', text: old[i++] ?? '' })
      j++
    } else if ((common[here + width] ?? 0) >= (common[here + 1] ?? 0)) lines.push({ sign: '-', text: old[i++] ?? '' })
    else lines.push({ sign: '+', text: now[j++] ?? '' })
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)]
}
