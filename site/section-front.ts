/** Sections without an index of their own get one from the pages in them. */
import { descriptionsIn, firstSentence } from '../scripts/lib/descriptions.ts'
import { INDEX } from '../scripts/lib/pages.ts'
import { html, type Markup } from './html.ts'
import { type Arranged, labelOf, sectionOf, twinOf } from './layout.ts'
import { relative } from './links.ts'
import type { Page } from './pages.ts'

/** The front page of a section: its pages by group, each with a sentence about it. */
export function sectionFront(page: Page, arranged: Arranged): Markup {
  const place = sectionOf(page, arranged)
  const described = descriptionsOf(arranged)
  return html`<h1>${page.title}</h1><p class="lead">${place?.section.about}</p>
${place?.groups.map(
  ({ title, pages }) => html`${title !== '' && html`<h2>${title}</h2>`}
<ul class="cards">${pages.map(each => html`<li><a href="${relative(page.address, each.address)}"><strong>${labelAmong(pages, each)}</strong><span>${leadOf(each, described)}</span></a></li>`)}</ul>`,
)}`
}

/** What the page of all pages says about a page, or its first sentence, without marks. */
function leadOf({ path, text }: Page, described: ReadonlyMap<string, string>): string {
  const plain = (described.get(path) ?? firstSentence(text)).replace(/[`*]|\b_|_\b/g, '')
  return plain === '' ? '' : `${plain.charAt(0).toUpperCase()}${plain.slice(1)}.`
}

function descriptionsOf(arranged: Arranged): ReadonlyMap<string, string> {
  const pages = arranged.flatMap(({ groups }) => groups.flatMap(group => group.pages))
  return descriptionsIn(pages.find(({ path }) => path === INDEX)?.text ?? '')
}

/** The same for programs that read. */
export function sectionText(page: Page, arranged: Arranged): string {
  const place = sectionOf(page, arranged)
  const described = descriptionsOf(arranged)
  const groups = (place?.groups ?? []).map(({ title, pages }) => {
    const list = pages
      .map(each => `- [${each.title}](${relative(page.address, twinOf(each.address))}): ${leadOf(each, described)}`)
      .join('\n')
    return `${title === '' ? '' : `## ${title}\n\n`}${list}\n`
  })
  return [`# ${page.title}\n\n${place?.section.about ?? ''}\n`, ...groups].join('\n')
}

/** Types of two entries may have one name: then the entry is added. */
function labelAmong(pages: readonly Page[], page: Page): string {
  const label = labelOf(page)
  if (pages.every(each => each === page || labelOf(each) !== label)) return label
  const entry = /^reference\/api\/([a-z]+)-/.exec(page.address)?.[1]
  return entry === undefined ? label : `${label} (${entry})`
}
