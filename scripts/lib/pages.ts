/** The shape of the documentation: where a page may lie, how it begins, how long it is, and that a reader can reach it. */
import { dirname, posix } from 'node:path'

/** The page that leads to every other one. */
export const INDEX = 'docs/index.md'

const MOST_LINES = 250

/** What the folders of docs/ are for; a page in another folder has no role. */
export const ROLES: Readonly<Record<string, string>> = {
  start: 'the first ten minutes',
  tutorials: 'one program, built step by step',
  guide: 'how to do one task',
  concepts: 'how the parts work together',
  reference: 'every option, key, message and limit',
  compare: 'what other software does',
  migrate: 'how to leave other libraries',
  decisions: 'why something is as it is',
}

/** Pages about all of it, which lie beside the folders. */
const TOP = ['index', 'glossary', 'security', 'performance', 'errors', 'rough-edges', 'tasks']

/** What is wrong with the place, the beginning and the length of a page in docs/. */
export function findPageProblems(path: string, text: string): string[] {
  const [, folder = '', ...rest] = path.split('/')
  const placed = rest.length > 0 ? folder in ROLES : TOP.includes(folder.replace(/\.md$/, ''))
  const place = rest.length > 0 ? `docs/${folder}/` : path
  const lines = text.trimEnd().split('\n')
  return [
    ...(placed
      ? []
      : [`${path}: ${place} has no role; use one of ${Object.keys(ROLES).join(', ')}, or name it in scripts/lib/pages.ts`]),
    ...(lines.length > MOST_LINES
      ? [`${path}:${MOST_LINES + 1}: ${lines.length} lines, at most ${MOST_LINES}; split the page`]
      : []),
    ...(/^# \S/.test(lines[0] ?? '') ? [] : [`${path}:1: a page starts with its title, as "# Title"`]),
    ...(startsWithSentence(lines.slice(1)) ? [] : [`${path}:3: after the title comes a sentence that says what the page is for`]),
  ]
}

/** Whether the first block is a paragraph, and has an end. */
function startsWithSentence(lines: readonly string[]): boolean {
  const [first = ''] = lines
    .join('\n')
    .trim()
    .split(/\n\s*\n/)
  return /^(?!\s*(?:[#|><]|```|[-+] |\* |\d+\. ))/.test(first) && /[.:](?:\s|$)/.test(first)
}

/** Pages that no chain of links from the index reaches. */
export function findOrphans(pages: ReadonlyMap<string, string>): string[] {
  const reached = new Set<string>()
  const open = [INDEX]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (reached.has(path)) continue
    reached.add(path)
    for (const target of linksOf(path, pages.get(path) ?? '')) if (pages.has(target)) open.push(target)
  }
  return [...pages.keys()]
    .filter(path => !reached.has(path))
    .map(path => `${path}: no link from ${INDEX} leads here; list it there or in a page that is listed`)
}

function linksOf(path: string, text: string): readonly string[] {
  const links = [...text.matchAll(/\]\(([^)\s#]+)/g)].map(([, link = '']) => link)
  return links.filter(link => !/^[a-z][a-z+.-]*:/i.test(link)).map(link => posix.join(dirname(path), decodeURI(link)))
}
