/**
 * `npm run build`: bundles the public entries and the examples into dist/ with shared chunks (one copy of every class, few files
 * to load), writes the JSON Schemas, and lets tsc write the declarations. `--js` leaves the declarations out. Speaks on stderr only, because
 * `npm run everything -- --stdio` runs it before a protocol on stdout.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { type RolldownOutput, rolldown } from 'rolldown'
import { writeFullFile } from './check-llms.ts'
import { buildConsolePage } from './console-page.ts'
import { COMMANDS, EXAMPLES, PUBLIC, present, WEB, WORKERS } from './lib/entries.ts'
import { listBuilt, root } from './lib/files.ts'
import { readImports } from './lib/source.ts'
import { webFaces } from './lib/web-faces.ts'
import { writeSchemas } from './schemas/write.ts'

const dist = join(root, 'dist')

/**
 * What is loaded together is one chunk: each file costs about half a millisecond at start, and each kilobyte its parsing.
 * `common` is what nearly everything needs, `records` what those need who keep or compare something, `stdio` and `http` what a server
 * on one carrier does. Only the last two of them may know Node, so that the web-standard face runs without.
 */
const groups = [
  {
    name: 'common',
    test: /src\/(jsonrpc|revisions)\/|src\/engine\/(?!(shared-sessions|internal-calls)\.ts)|src\/core\/(?!(journal|state|grant|feed|audit)\/|(sniff|sha256|call|share|spending|json-lines)\.ts|schema\/(ajv|interpreter|json-equal|peer|bounded|linear|walk))|(mcp|reliability)\/[a-z-]+\/(messages|headers|(?<!tasks\/)receiver)\.ts|reliability\/(cost\/rates|(confirmation|cost|idempotency|streaming|transactions)\/server)\.ts|stores\/store\.ts|mcp\/(progress\/|tasks\/current|resources\/template)|http\/names\.ts|src\/(auth\/resource\/options|server\/(auth|streams))\.ts/,
    priority: 2,
  },
  {
    name: 'records',
    test: /src\/engine\/(shared-sessions|internal-calls)\.ts|src\/core\/(audit\/|(sha256|call|share|spending|json-lines|schema\/json-equal)\.ts)|mcp\/tasks\/(result|view|receiver)\.ts/,
    priority: 1,
  },
  { name: 'stdio', test: /src\/transports\/(framing|stdio\/server)/, priority: 1 },
  { name: 'http', test: /src\/transports\/http\/(?!client|fetch|listen|linger|node|names|scripted)/, priority: 1 },
  { name: 'http-node', test: /src\/transports\/(http\/(listen|linger|node)|sse\/server)/, priority: 1 },
]

const started = performance.now()
const skip = (file: string) => console.error(`build: ${file} does not exist yet, left out`)
const entries = Object.assign({}, ...[PUBLIC, WORKERS, COMMANDS, EXAMPLES].map(each => present(each, skip)))
const written = replaceOutput([...(await bundle()), ...(await bundleWeb())])
await writeSchemas()
await buildConsolePage()
writeFullFile()
const declared = process.argv.includes('--js') || writeDeclarations()
console.error(`build: ${Object.keys(entries).length} entries, ${written} files, ${Math.round(performance.now() - started)} ms`)
if (!declared) process.exit(1)

async function bundle(): Promise<RolldownOutput['output']> {
  const build = await rolldown({
    cwd: root,
    input: entries,
    // Everything that is not a path stays an import: node builtins, dependencies, optional peers, our own name. What newer
    // syntax is compiled to (`await using`) is taken in, so that nobody has to install it.
    external: id => !/^[./]|^[A-Za-z]:|^@oxc-project\/runtime/.test(id),
    platform: 'neutral',
    transform: { target: 'node22' },
  })
  const { output } = await build.generate({
    format: 'esm',
    sourcemap: true,
    chunkFileNames: 'chunks/[name]-[hash].js',
    // Less to parse at start: dead branches, comments (editors read them in the declarations) and long local names go. Names of
    // functions and classes stay, and so do lines, because Node shows both when a program ends by an error.
    minify: {
      compress: true,
      mangle: { toplevel: false, keepNames: { function: true, class: true } },
      codegen: { removeWhitespace: false },
    },
    comments: { jsdoc: false },
    codeSplitting: { groups },
  })
  await build.close()
  return output
}

/** The same sources with the faces that need nothing of Node. Bundlers take them further, so that there are no maps. */
async function bundleWeb(): Promise<RolldownOutput['output'][number][]> {
  const input = Object.fromEntries(Object.entries(present(PUBLIC)).filter(([name]) => WEB.includes(name)))
  const build = await rolldown({
    cwd: root,
    input,
    platform: 'neutral',
    transform: { target: 'es2022' },
    plugins: [webFaces],
  })
  const { output } = await build.generate({
    format: 'esm',
    entryFileNames: 'web/[name].js',
    chunkFileNames: 'web/chunks/[name]-[hash].js',
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } },
    comments: { jsdoc: false },
    codeSplitting: { groups: groups.slice(0, 2) },
  })
  await build.close()
  return output
}

/** Writes what changed, then removes what is stale, so that a process running from dist/ is not pulled from under its feet. */
function replaceOutput(files: readonly RolldownOutput['output'][number][]): number {
  for (const file of files) {
    const path = join(dist, file.fileName)
    const contents = file.type === 'chunk' ? escaped(file.code) : file.source
    if (existsSync(path) && readFileSync(path).equals(Buffer.from(contents))) continue
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, contents)
  }
  const fresh = new Set(files.map(({ fileName }) => `dist/${fileName}`))
  const stale = (path: string) => !fresh.has(path) && !path.startsWith('dist/console/')
  for (const path of listBuilt(/\.js(\.map)?$/)) if (stale(path)) rmSync(join(root, path))
  return files.length
}

/** In ASCII: one other character in a file makes V8 hold all of it at two bytes each, and reading it takes a tenth longer. */
function escaped(code: string): string {
  return code.replace(/[^\x00-\x7f]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function writeDeclarations(): boolean {
  rmSync(join(dist, 'types'), { recursive: true, force: true })
  if (!existsSync(join(root, 'src'))) return true
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: ['ignore', 2, 2] })
  pruneDeclarations()
  for (const path of listBuilt(/\.d\.ts$/)) plainDeclarations(join(root, path))
  return status === 0
}

/**
 * In words that compilers since 5.4 know: imports of what is there when it runs, and byte arrays without a parameter. What is
 * disposable brings the library that says so, because `lib` of most projects does not.
 */
function plainDeclarations(path: string): void {
  const text = readFileSync(path, 'utf8')
  const plain = text
    .replaceAll(/((?:from|import)\s*\(?\s*['"]\.{1,2}\/[^'"]+)(?<!\.d)\.ts(?=['"])/g, '$1.js')
    .replaceAll(/\bUint8Array<ArrayBuffer(?:Like)?>/g, 'Uint8Array')
  const disposable = /\b(?:asyncDispose|(?:Async)?Disposable)\b/.test(plain) ? '/// <reference lib="esnext.disposable" />\n' : ''
  if (disposable + plain !== text) writeFileSync(path, disposable + plain)
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
