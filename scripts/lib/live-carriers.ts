/** On which carriers a statement of MCP Live is tried, for each end: read from the sources of the tests that judge frames. */

export const liveCarriers = ['stdio', 'websocket', '2025-11-25', '2026-07-28'] as const
export type LiveCarrier = (typeof liveCarriers)[number]
export type LiveEnd = 'host' | 'server'

/** The lists over which those tests run, as they call them. */
const lists = new Map<string, readonly LiveCarrier[]>([
  ['places', liveCarriers],
  ['carriers', liveCarriers],
  ['sessionCarriers', ['stdio', 'websocket', '2025-11-25']],
])

/** Which end a file of tests judges, by frames that the other end has made by hand. */
const ends: readonly (readonly [RegExp, LiveEnd])[] = [
  [/^test\/live\/(?:acts|calls|sets)\.test\.ts$/, 'server'],
  [/^test\/(?:live\/host-[a-z]+|hosting\/[a-z-]+-on-the-wire)\.test\.ts$/, 'host'],
]

export function endOf(path: string): LiveEnd | undefined {
  return ends.find(([pattern]) => pattern.test(path))?.[1]
}

/** Parts of a source that run on carriers. */
export function carrierBlocks(source: string): readonly { readonly carriers: readonly LiveCarrier[]; readonly text: string }[] {
  return [...source.matchAll(/^describe\.each\((\w+)\)\(.*?^\}\)$/gms)].map(([text, list = '']) => ({
    carriers: lists.get(list) ?? [],
    text,
  }))
}

/** `host L3.1-1 …` and `server L3.1-1 …`: whose statement it is. */
export function readEnds(text: string): ReadonlyMap<LiveEnd, readonly string[]> {
  const found = new Map<LiveEnd, string[]>([
    ['host', []],
    ['server', []],
  ])
  for (const [, end, ids = ''] of text.matchAll(/^(host|server) (L.*)$/gm))
    if (end === 'host' || end === 'server') found.get(end)?.push(...ids.split(' '))
  return found
}
