/**
 * `npm run build`: bundles the public entries and the examples into dist/ with shared chunks (one copy of every class, few files
 * to load), and lets tsc write the declarations. `--js` leaves the declarations out. Speaks on stderr only, because
 * `npm run everything -- --stdio` runs it before a protocol on stdout.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { type BuildOptions, build, type OutputFile } from 'esbuild'
import { EXAMPLES, PUBLIC, present } from './lib/entries.ts'
import { listBuilt, root } from './lib/files.ts'
import { readImports } from './lib/source.ts'

const dist = join(root, 'dist')

const options = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'neutral',
  // Everything that is not a path stays an import: node builtins, dependencies, optional peers, our own name.
  packages: 'external',
  target: 'node22',
  sourcemap: true,
  chunkNames: 'chunks/[name]-[hash]',
  write: false,
  logLevel: 'warning',
} as const satisfies BuildOptions

const started = performance.now()
const skip = (file: string) => console.error(`build: ${file} does not exist yet, left out`)
const entries = { ...present(PUBLIC, skip), ...present(EXAMPLES, skip) }
const written = replaceOutput(await bundle())
const declared = process.argv.includes('--js') || writeDeclarations()
console.error(`build: ${Object.keys(entries).length} entries, ${written} files, ${Math.round(performance.now() - started)} ms`)
if (!declared) process.exit(1)

async function bundle(): Promise<readonly OutputFile[]> {
  try {
    return (await build({ ...options, entryPoints: entries })).outputFiles
  } catch {
    // esbuild has printed the errors with their places already.
    process.exit(1)
  }
}

/** Writes what changed, then removes what is stale, so that a process running from dist/ is not pulled from under its feet. */
function replaceOutput(files: readonly OutputFile[]): number {
  for (const { path, contents } of files) {
    if (existsSync(path) && readFileSync(path).equals(contents)) continue
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, contents)
  }
  const fresh = new Set(files.map(({ path }) => relative(root, path).replaceAll('\\', '/')))
  for (const path of listBuilt(/\.js(\.map)?$/)) if (!fresh.has(path)) rmSync(join(root, path))
  return files.length
}

function writeDeclarations(): boolean {
  rmSync(join(dist, 'types'), { recursive: true, force: true })
  if (!existsSync(join(root, 'src'))) return true
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: ['ignore', 2, 2] })
  pruneDeclarations()
  return status === 0
}

/** Removes the declarations that no public entry leads to: they are nobody's business, and some belong to test helpers. */
function pruneDeclarations(): void {
  const reached = new Set(
    Object.values(present(PUBLIC)).map(file => file.replace(/^src/, 'dist/types').replace(/\.ts$/, '.d.ts')),
  )
  for (const path of reached) {
    if (!existsSync(join(root, path))) continue
    for (const { specifier } of readImports(readFileSync(join(root, path), 'utf8'))) {
      if (specifier?.startsWith('.')) reached.add(posix.join(posix.dirname(path), specifier).replace(/(?<!\.d)\.ts$/, '.d.ts'))
    }
  }
  for (const path of listBuilt(/\.d\.ts$/)) if (!reached.has(path)) rmSync(join(root, path))
}
