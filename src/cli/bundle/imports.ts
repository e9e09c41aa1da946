/** The files of a package that its entry imports, by the text of each: nothing is run to find out. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'

/** `import … from`, `export … from`, `import '…'`, `import('…')`, `require('…')`, `new URL('…', import.meta.url)`. */
const specifiers = [
  /(?:^|[\s;}])(?:import|export)\s*(?:[\w*\s{},$]*?\bfrom\s*)?(["'])([^"'\n]+)\1/g,
  /\b(?:import|require)\s*\(\s*(["'`])([^"'`\n$]+)\1/g,
  /\bnew\s+URL\s*\(\s*(["'`])(\.[^"'`\n$]*)\1\s*,\s*import\.meta\.url/g,
]
const endings = ['', '.js', '.mjs', '.cjs', '.json', '.node', '/index.js', '/index.cjs']

/** Paths with slashes, seen from the root; the entry is the first. */
export function importedFiles(root: string, entry: string): readonly string[] {
  const found = new Set<string>([entry])
  for (const path of found) {
    if (!/\.[cm]?js$/.test(path)) continue
    for (const specifier of specifiersIn(readFileSync(join(root, path), 'utf8'))) {
      const file = fileAt(resolve(root, dirname(path), specifier))
      if (file === undefined) continue
      const inside = relative(root, file).split('\\').join('/')
      if (inside.startsWith('../'))
        throw new CliError(
          1,
          `${clip(path)} imports ${clip(specifier)}, which lies outside of the package`,
          'Put it into the package, or make a dependency of it',
        )
      found.add(inside)
    }
  }
  return [...found]
}

/** Only those that name a file: packages are dependencies. */
function specifiersIn(text: string): readonly string[] {
  return specifiers
    .flatMap(pattern => [...text.matchAll(pattern)].map(([, , name = '']) => name))
    .filter(name => /^\.\.?\//.test(name))
}

/** As Node would find it, and without what only looks like an import: a word in a comment leads to no file. */
function fileAt(path: string): string | undefined {
  return endings.map(ending => `${path}${ending}`).find(file => existsSync(file) && statSync(file).isFile())
}
