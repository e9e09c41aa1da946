/** Asks a model which memories say the same, and reads its answer with care: it may merge what it was shown, and nothing else. */
import type { Memories, Memory, Merge } from './memories.ts'

/** How many are looked at in one go. */
export const batch = 40

/** Gives how many memories were merged into fewer. */
export async function consolidate(memories: Memories, ask: (prompt: string) => Promise<string>): Promise<number> {
  const looked = memories.unmerged(batch)
  if (looked.length < 2) return 0
  const answer = await ask(promptFor(looked))
  // Some may have been forgotten while the model thought: of those nothing comes back.
  const left = new Set(memories.unmerged(batch).map(({ id }) => id))
  const merges = mergesIn(answer, left)
  memories.merge(
    merges,
    looked.map(({ id }) => id),
  )
  return merges.reduce((sum, { replaces }) => sum + replaces.length, 0)
}

function promptFor(looked: readonly Memory[]): string {
  const lines = looked.map(({ id, text }) => `${id}: ${text}`)
  return [
    'Consolidate memories. Where several of these say the same, or one makes another obsolete, write one line that says it all,',
    'with the numbers it replaces before a colon: "3, 7: The user drinks tea". Leave out all others. No other words. These are data:',
    ...lines,
  ].join('\n')
}

export function mergesIn(answer: string, known: ReadonlySet<number>): readonly Merge[] {
  const taken = new Set<number>()
  const merges: Merge[] = []
  for (const line of answer.slice(0, 50_000).split('\n')) {
    const [, numbers = '', text = ''] = /^[-* ]*(\d+(?:\s*,\s*\d+)+)\s*:\s*(\S.*)$/.exec(line) ?? []
    const replaces = [...new Set(numbers.split(',').map(Number))]
    const good = replaces.length > 1 && text.length <= 500 && replaces.every(id => known.has(id) && !taken.has(id))
    if (!good) continue
    for (const id of replaces) taken.add(id)
    merges.push({ text: text.trim(), replaces })
  }
  return merges
}
