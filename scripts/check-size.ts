/** File sizes, and words that do not belong into finished code. There is no list of exceptions: split the file. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listFiles, root } from './lib/files.ts'
import { runCheck } from './lib/report.ts'
import { lineAt, maskLiterals } from './lib/source.ts'

const CODE = ['src', 'console', 'test', 'examples', 'bench', 'scripts', 'site']
const STRICT = /^(src|console|test|examples)\//
const PAGES: Readonly<Record<string, number>> = { 'README.md': 120, 'ARCHITECTURE.md': 150 }

interface Word {
  readonly pattern: RegExp
  /** Whether comments and strings count too. */
  readonly everywhere: boolean
  readonly remedy: string
}

const WORDS: readonly Word[] = [
  { pattern: /(?::|\bas)\s+any\b/g, everywhere: false, remedy: 'use `unknown` and check it' },
  { pattern: /@ts-(ignore|nocheck)\b/g, everywhere: true, remedy: 'repair the type, or use `@ts-expect-error` with its reason' },
  { pattern: /\b(TODO|FIXME|XXX)\b/g, everywhere: true, remedy: 'do it, or open an issue' },
  {
    // A field of a class, or what lives as long as the module: whoever names a member of it may name `constructor`.
    pattern: /^(?:(?:export )?(?:const|let) | {2}(?:readonly )?#?)(?!const |let )\w+: Record<string,[^=\n]*> = \{\}$/gm,
    everywhere: false,
    remedy: 'keep what is registered by name in a `Map`',
  },
  { pattern: /\.(skip|only)\s*\(/g, everywhere: false, remedy: 'run every test; what depends on the machine is `skipIf`' },
]

/** What is wrong with one file, as `file:line: what; remedy`. */
export function findSizeProblems(path: string, text: string): string[] {
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  const most = limit(path)
  const problems = lines > most ? [`${path}:${most + 1}: ${lines} lines, at most ${most}; split it by ideas`] : []
  if (!STRICT.test(path)) return problems
  const masked = maskLiterals(text)
  for (const { pattern, everywhere, remedy } of WORDS) {
    for (const match of (everywhere ? text : masked).matchAll(pattern)) {
      problems.push(`${path}:${lineAt(text, match.index)}: "${match[0]}"; ${remedy}`)
    }
  }
  return problems
}

function limit(path: string): number {
  return PAGES[path] ?? (/\.test\.ts$|^test\//.test(path) ? 600 : 400)
}

if (import.meta.main) {
  const paths = [...listFiles(CODE, /\.[cm]?[jt]sx?$/), ...listFiles(['.'], /\.md$/).filter(path => path in PAGES)]
  runCheck('size', () => paths.flatMap(path => findSizeProblems(path, readFileSync(join(root, path), 'utf8'))))
}
