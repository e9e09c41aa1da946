/** What search knows: one entry for each heading of each page. The reader's browser makes the index from it, when search is first opened. */
import type { Passage } from './markdown.ts'
import type { Page } from './pages.ts'

export interface Entry {
  readonly id: number
  /** Address with anchor. */
  readonly address: string
  readonly page: string
  /** Empty for the beginning of a page. */
  readonly heading: string
  readonly section: string
  readonly text: string
  readonly code: string
  /** How much a hit here counts: a guide is read by more people than a list of mutations. */
  readonly weight: number
}

const WEIGHTS: readonly (readonly [address: RegExp, weight: number])[] = [
  [/^source\//, 0.3],
  [/^(changelog|contributing|architecture|tasks)$/, 0.4],
  [/^reference\/conformance-/, 0.4],
  [/^reference\/api\//, 0.35],
  [/^decisions\//, 0.6],
  [/^(reference|migrate|compare)\//, 0.8],
]

export function entriesOf(
  pages: readonly { readonly page: Page; readonly section: string; readonly passages: readonly Passage[] }[],
): readonly Entry[] {
  const entries = pages.flatMap(({ page, section, passages }) =>
    passages.map(({ anchor, title, text, code }) => ({
      address: page.address + (anchor === '' ? '' : `#${anchor}`),
      page: page.title,
      heading: anchor === '' ? '' : title,
      section,
      text: text.trim(),
      // Names of the API are headings; its signatures would be half of the index.
      code: /^(source|reference\/api)\//.test(page.address) ? '' : code.trim(),
      weight: WEIGHTS.find(([address]) => address.test(page.address))?.[1] ?? 1,
    })),
  )
  return entries.map((entry, id) => ({ id, ...entry }))
}
