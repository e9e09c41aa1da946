/** The guard before JSON: within the limits it is JSON.parse, beyond them a refusal, and never anything else. */
import { McpError } from '../../../src/jsonrpc/error.ts'
import { frameLimits } from '../../../src/jsonrpc/limits.ts'
import { parse } from '../../../src/jsonrpc/parse.ts'
import { bentText, excessive, value } from '../json.ts'
import { attempt, demand, demandSame, target } from '../target.ts'

interface Input {
  readonly text: string
  readonly depth: number
  readonly elements: number
}

export const parsing = target<Input>({
  name: 'parse',
  make: source => {
    const depth = source.pick([128, 4, 2, 1])
    const elements = source.pick([200_000, 50, 5])
    const kind = source.int(8)
    if (source.once(300)) return { text: excessive(source), depth, elements }
    const whole = JSON.stringify(value(source, 4), null, source.pick(['', ' ']))
    return { text: kind < 4 ? whole : bentText(source, whole), depth, elements }
  },
  check: ({ text, depth, elements }) => {
    const limits = { ...frameLimits, depth, elements }
    let refusal: McpError | undefined
    const got = attempt(
      () => parse(text, limits),
      error => {
        refusal = error instanceof McpError ? error : undefined
        return refusal !== undefined
      },
    )
    const native = attempt(
      () => ({ value: JSON.parse(text) as unknown }),
      () => true,
    )
    if (refusal === undefined) {
      demandSame(got, native?.value, 'the value')
      demand(deepest(got) <= depth, () => `nested ${deepest(got)} levels deep, the limit is ${depth}`)
      return
    }
    demand(refusal.message.length < 300, () => 'the refusal repeats too much')
    if (refusal.kind === 'parse') demand(native === undefined, () => 'JSON was refused as none')
    // Brackets are counted before the text is known to be JSON, so what is none may be refused for either reason.
    else if (native !== undefined)
      demand(nesting(text) > depth || elementsAtMost(text) > elements, () => 'refused within the limits')
  },
})

function deepest(root: unknown): number {
  let most = 0
  const open: [unknown, number][] = [[root, 0]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [at, depth] = next
    if (typeof at !== 'object' || at === null) continue
    most = Math.max(most, depth + 1)
    for (const inner of Object.values(at)) open.push([inner, depth + 1])
  }
  return most
}

/** How deep a text of JSON goes, also in members that a later one of the same name replaces. */
function nesting(text: string): number {
  let [most, now] = [0, 0]
  for (const [bracket] of text.replace(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/[[{\]}]/g)) {
    now += bracket === '[' || bracket === '{' ? 1 : -1
    most = Math.max(most, now)
  }
  return most
}

/** At most so many elements has the text: brackets and commas, those in strings too. */
function elementsAtMost(text: string): number {
  return text.match(/[[{,]/g)?.length ?? 0
}
