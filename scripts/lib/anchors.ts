/** The anchors of headings as GitHub makes them, so that a link works there, in the checks and on the site. */

import { anchorOf } from './tables.ts'

/** Takes the headings of one page in order and gives the anchor of each. */
export function createAnchors(): (title: string) => string {
  const seen = new Map<string, number>()
  return title => {
    const slug = anchorOf(title)
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return times ? `${slug}-${times}` : slug
  }
}

/** Every anchor of a page of Markdown. */
export function anchorsOf(text: string): Set<string> {
  const anchor = createAnchors()
  const plain = text.replace(/^(```|~~~)[\s\S]*?^\1/gm, '')
  const titles = [...plain.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)].map(([, title = '']) => title)
  return new Set(titles.map(anchor))
}
