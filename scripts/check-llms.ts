/**
 * Keeps llms.txt, an index of the documentation for language models (llmstxt.org); `--write` brings it up to date. The build adds
 * llms-full.txt, all of it in one file, which is a copy and therefore not in the repository.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { descriptionsIn, firstSentence } from './lib/descriptions.ts'
import { listFiles, root } from './lib/files.ts'
import { INDEX } from './lib/pages.ts'
import { runCheck } from './lib/report.ts'

export interface Page {
  readonly path: string
  readonly text: string
}

/** In the order in which they are listed; the first that fits takes the page. */
const SECTIONS: readonly (readonly [title: string, fits: RegExp])[] = [
  ['Start', /^README\.md$|^docs\/index\.md$|^docs\/start\//],
  ['Tutorials', /^docs\/tutorials\//],
  ['Guides', /^docs\/guide\//],
  ['Concepts', /^docs\/concepts\/|^docs\/(security|glossary)\.md$/],
  ['Reference', /^docs\/reference\/|^docs\/[^/]+\.md$/],
  ['Compare and migrate', /^docs\/(compare|migrate)\//],
  ['Optional', /^docs\/decisions\//],
]

/** Where it begins: `docs/guide/server.md` before the rest of its section. */
const FIRST = ['README.md', 'docs/index.md', 'docs/guide/server.md', 'docs/guide/client.md']

export function sectionsOf(pages: readonly Page[]): ReadonlyMap<string, readonly Page[]> {
  const rank = ({ path }: Page) => (FIRST.includes(path) ? FIRST.indexOf(path) : FIRST.length)
  const sorted = [...pages].sort((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1))
  const of = ({ path }: Page) => SECTIONS.find(([, fits]) => fits.test(path))?.[0]
  return new Map(SECTIONS.map(([title]) => [title, sorted.filter(page => of(page) === title)]))
}

/** A title, a summary, and a list of links, each with what the index of the documentation says about it, or its first sentence. */
export function writeIndex(pages: readonly Page[], summary: string): string {
  const described = descriptionsIn(pages.find(({ path }) => path === INDEX)?.text ?? '')
  const about = ({ path, text }: Page): string => {
    const known = described.get(path) ?? firstSentence(text)
    return known === '' ? '' : `: ${known}`
  }
  const parts = [...sectionsOf(pages)].flatMap(([title, listed]) => {
    if (listed.length === 0) return []
    const lines = listed.map(page => `- [${titleOf(page)}](${page.path})${about(page)}`)
    return [`## ${title}\n\n${lines.join('\n')}\n`]
  })
  return [`# Vivarium\n\n> ${summary}\n`, ...parts].join('\n')
}

/** Everything but the decisions, each page under its path; links lead from the root. */
export function writeFull(pages: readonly Page[], summary: string): string {
  const listed = [...sectionsOf(pages)].flatMap(([title, each]) => (title === 'Optional' ? [] : each))
  return [`# Vivarium\n\n> ${summary}\n`, ...listed.map(page => `<!-- ${page.path} -->\n\n${rooted(page).trim()}\n`)].join('\n')
}

function titleOf({ path, text }: Page): string {
  return /^#\s+(.+)$/m.exec(text)?.[1] ?? path
}

function rooted({ path, text }: Page): string {
  return text.replace(/\]\((?![a-z][a-z+.-]*:|#|\/)([^)\s]+)\)/gi, (_, link: string) => `](${posix.join(dirname(path), link)})`)
}

function read(path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return ''
  }
}

/** What the package does not hold is not listed: a link to it would lead nowhere there. */
function readPages(): Page[] {
  return ['README.md', ...listFiles(['docs'], /\.md$/)].map(path => ({ path, text: read(path) }))
}

function readSummary(): string {
  return (JSON.parse(read('package.json')) as { description: string }).description
}

/** Writes llms-full.txt beside llms.txt. */
export function writeFullFile(): void {
  writeFileSync(join(root, 'llms-full.txt'), writeFull(readPages(), readSummary()))
}

if (import.meta.main) {
  const index = writeIndex(readPages(), readSummary())
  if (process.argv.includes('--write')) writeFileSync(join(root, 'llms.txt'), index)
  const fresh = read('llms.txt') === index
  runCheck('llms', () => (fresh ? [] : ['llms.txt is not up to date with the documentation; run `npm run fix`']))
}
