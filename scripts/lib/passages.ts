/** Everything that users of the project read, as passages: the pages, the doc comments of public names, and the sentences in src/. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { publicSurface } from '../api/surface.ts'
import { PUBLIC } from './entries.ts'
import { listFiles, root } from './files.ts'
import { commentProse, literalProse, type Passage, pageProse } from './prose.ts'

export const ROOT_PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md']

/** Pages at the root and in docs/. */
export function pagePassages(): readonly Passage[] {
  return [...ROOT_PAGES, ...listFiles(['docs'], /\.md$/)].map(path => pageProse(path, read(path)))
}

/** What editors show of public names. */
export function commentPassages(): readonly Passage[] {
  const byFile = new Map<string, { readonly start: number; readonly end: number }[]>()
  for (const { file, start, comment } of publicSurface(Object.values(PUBLIC))) {
    if (comment === undefined) continue
    const at = read(file).lastIndexOf(comment, start)
    byFile.set(file, [...(byFile.get(file) ?? []), { start: at, end: at + comment.length }])
  }
  return [...byFile].map(([path, comments]) => commentProse(path, read(path), comments))
}

/** Programs of shells in templates. */
const SCRIPTS = 'src/cli/completion-scripts.ts'

/** Messages, help texts and other sentences that a program shows. */
export function messagePassages(): readonly Passage[] {
  return listFiles(['src'], /(?<!\.test)\.ts$/)
    .filter(path => path !== SCRIPTS)
    .map(path => literalProse(path, read(path)))
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
