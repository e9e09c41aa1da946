/**
 * Links in the documentation lead somewhere, headings included; every page has its place, a beginning and a sensible length, and can be
 * reached from the index; decisions are numbered `NNNN-title.md`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { anchorsOf } from './lib/anchors.ts'
import { listFiles, root } from './lib/files.ts'
import { findOrphans, findPageProblems } from './lib/pages.ts'
import { runCheck } from './lib/report.ts'

const LINK = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\[[^\]]+\]:\s*(\S+)/gm

export interface Tree {
  exists(path: string): boolean
  read(path: string): string
}

/** Links of one page that lead nowhere, as `file:line: what`. */
export function findBrokenLinks(path: string, tree: Tree): string[] {
  const text = blankCode(tree.read(path))
  return [...text.matchAll(LINK)].flatMap(match => {
    const link = match[1] ?? match[2] ?? ''
    if (/^[a-z][a-z+.-]*:/i.test(link) || link.startsWith('//')) return []
    const [file = '', anchor] = link.split('#')
    const target = file ? posix.join(dirname(path), decodeURI(file)) : path
    const at = `${path}:${text.slice(0, match.index).split('\n').length}`
    if (!tree.exists(target)) return [`${at}: link to ${target}, which does not exist`]
    if (anchor && target.endsWith('.md') && !anchorsOf(tree.read(target)).has(anchor))
      return [`${at}: ${target} has no heading #${anchor}`]
    return []
  })
}

/** Code keeps its length but loses its brackets, so that examples are not taken for links. */
function blankCode(text: string): string {
  return text.replace(/^(```|~~~)[\s\S]*?^\1|`[^`\n]+`/gm, code => code.replace(/[^\n]/g, ' '))
}

/** Names of decision files that are wrong or used twice. */
export function findDecisionProblems(paths: readonly string[]): string[] {
  const numbers = new Map<string, string>()
  return paths.flatMap(path => {
    const number = /^docs\/decisions\/(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$/.exec(path)?.[1]
    if (!number) return [`${path}: decisions are named NNNN-title.md, in lower case with hyphens`]
    const other = numbers.get(number)
    numbers.set(number, path)
    return other ? [`${path}: number ${number} is taken by ${other}; use the next free one`] : []
  })
}

if (import.meta.main) {
  const tree = {
    exists: (path: string) => existsSync(join(root, path)),
    read: (path: string) => readFileSync(join(root, path), 'utf8'),
  }
  const pages = new Map(listFiles(['docs'], /\.md$/).map(path => [path, tree.read(path)]))
  runCheck('docs', () => [
    ...listFiles(['.'], /\.md$/).flatMap(path => findBrokenLinks(path, tree)),
    ...[...pages].flatMap(([path, text]) => findPageProblems(path, text)),
    ...findOrphans(pages),
    ...findDecisionProblems(listFiles(['docs/decisions'], /./)),
  ])
}
