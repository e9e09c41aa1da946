/** Sections without an index of their own get one from the pages in them. */
import { html, type Markup } from './html.ts'
import { type Arranged, labelOf, sectionOf, twinOf } from './layout.ts'
import { relative } from './links.ts'
import type { Page } from './pages.ts'

/** The front page of a section: its pages by group, each with its first sentence. */
export function sectionFront(page: Page, arranged: Arranged): Markup {
  const place = sectionOf(page, arranged)
  return html`<h1>${page.title}</h1><p class="lead">${place?.section.about}</p>
${place?.groups.map(
  ({ title, pages }) => html`${title !== '' && html`<h2>${title}</h2>`}
<ul class="cards">${pages.map(each => html`<li><a href="${relative(page.address, each.address)}"><strong>${labelOf(each)}</strong><span>${leadOf(each)}</span></a></li>`)}</ul>`,
)}`
}

/** The first sentence of a page, without marks. */
function leadOf({ text }: Page): string {
  const paragraph = text
    .replace(/^(```|~~~)[\s\S]*?^\1$/gm, '')
    .split(/\n\s*\n/)
    .find(part => !/^\s*([#|>-]|<!--|$)/.test(part))
  const plain = (paragraph ?? '')
    .replace(/\s+/g, ' ')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*Context\.\*\*/, '')
    .replace(/[`*]|\b_|_\b/g, '')
    .trim()
  return (/^.*?[.:](?=\s|$)/.exec(plain)?.[0] ?? plain).replace(/:$/, '.')
}

/** The same for programs that read. */
export function sectionText(page: Page, arranged: Arranged): string {
  const place = sectionOf(page, arranged)
  const groups = (place?.groups ?? []).map(({ title, pages }) => {
    const list = pages
      .map(each => `- [${each.title}](${relative(page.address, twinOf(each.address))}): ${leadOf(each)}`)
      .join('\n')
    return `${title === '' ? '' : `## ${title}\n\n`}${list}\n`
  })
  return [`# ${page.title}\n\n${place?.section.about ?? ''}\n`, ...groups].join('\n')
}
