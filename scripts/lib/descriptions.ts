/** What a page is about in a few words: as the index of the documentation says it, or else by the page's first sentence. */
import { posix } from 'node:path'
import { INDEX } from './pages.ts'

/** Descriptions by path, from the lines `- [Title](page.md): description` of the index. */
export function descriptionsIn(index: string): ReadonlyMap<string, string> {
  const items = index.matchAll(/^- \[[^\]]+\]\(([^)\s#]+\.md)\): (.+(?:\n {2}.+)*)$/gm)
  return new Map(
    [...items].map(([, link = '', text = '']) => [posix.join(posix.dirname(INDEX), link), plainText(text).replace(/\.$/, '')]),
  )
}

/** The first sentence of the first paragraph, without its full stop. A colon ends it only where the paragraph ends with it. */
export function firstSentence(text: string): string {
  const paragraph = text
    .replace(/^(```|~~~)[\s\S]*?^\1$/gm, '')
    .split(/\n\s*\n/)
    .map(part => part.trim())
    .find(part => part !== '' && !/^([#|>-]|<!--|\*\*Context)/.test(part))
  // Of a decision the choice is told, without its label.
  const plain = plainText((paragraph ?? '').replace(/^\*\*Choice\.\*\*\s*/, ''))
  return (/^.*?\.(?=\s|$)/.exec(plain)?.[0] ?? plain).replace(/[.:]$/, '')
}

/** One line, with the text of links instead of the links. */
function plainText(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
    .trim()
}
