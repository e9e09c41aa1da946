/** `vivarium bundle`: what is needed to publish a server, made from the server itself and its package.json. */

import { hash } from 'node:crypto'
import { lstatSync, readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { type Zippable, zipSync } from 'fflate'
import { clip } from '../../jsonrpc/limits.ts'
import { type BundleFiles, bundleFiles } from '../bundle/files.ts'
import { type BundleVariable, manifestOf, serverJson, variableOf } from '../bundle/manifests.ts'
import { mainFile, type OfferFacts, offerFacts, type PackageFacts, packageFacts } from '../bundle/package-facts.ts'
import { type ConnectingOptions, withClient } from '../connecting.ts'
import { CliError, type Io } from '../io.ts'
import { asideOf, type Printer, printerOf, sizeText } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { exportsServer } from '../target.ts'

/** The options of `vivarium bundle`. */
interface BundleOptions extends ConnectingOptions {
  /** The file to write; true for the default name. */
  readonly mcpb?: string | true
  /** The file to write; true for the default name. */
  readonly serverJson?: string | true
  /** Where the bundle will be fetched. */
  readonly mcpbUrl?: string
  /** Addresses at which the server is served. */
  readonly remote?: readonly string[]
  /** Variables that the user has to give. */
  readonly variable?: readonly BundleVariable[]
  /** Files that are packed although they look like secrets. */
  readonly include?: readonly string[]
  /** Replace files that are there. */
  readonly force?: boolean
  readonly format: 'text' | 'json'
}

/** `vivarium bundle`. */
export const bundle: Verb = (command, io) => {
  command
    .argument(
      '[file]',
      'the server: a file that exports it, or a program that speaks MCP over stdio; a bundle needs a .js file (default: "main" of package.json)',
    )
    .option('--mcpb [file]', 'Write an MCPB bundle, which hosts can install (default: NAME-VERSION.mcpb)')
    .option('--server-json [file]', 'Write server.json for the registry (default: server.json)')
    .option('--mcpb-url <url>', 'Name this download address of the bundle in server.json, with its digest')
    .option('--remote <url>', 'Name this HTTP address of the server in server.json', { repeated: true })
    .option('--variable <NAME>', "Ask the user for this variable: NAME, or 'NAME=description'", {
      repeated: true,
      parse: variableOf,
    })
    .option('--include <path>', 'Pack this file although its name looks like a secret', {
      repeated: true,
    })
    .option('--force', 'Replace existing files')
    .option('--env <NAME>', 'Pass an environment variable to the server while it is asked what it offers', { repeated: true })
    .note(
      'The server is started once and asked for its tools and prompts. Name, version, author and the rest come from package.json.\nA bundle contains the "files" of package.json (otherwise what the server imports) and the dependencies. Its content is listed before it is written.\nFiles whose names look like secrets (.env, *.pem, *.db, tokens, tapes …) are refused.',
    )
    .examples([
      ['vivarium bundle dist/server.js --mcpb', 'Write a bundle, with the installed dependencies'],
      ['vivarium bundle server.js --server-json --remote https://host/mcp', 'Write server.json for a server at an address'],
    ])
    .action<BundleOptions>(call => run(call, io))
}

/** Looks at the package, asks the server what it offers, and writes what was asked for. */
async function run(call: VerbCall<BundleOptions>, io: Io): Promise<number> {
  const [file = mainFile()] = call.words
  const { mcpb, serverJson: registry } = call.options
  if (mcpb === undefined && registry === undefined)
    throw new CliError('Nothing to write: neither --mcpb nor --server-json is given', 'Pass --mcpb, --server-json, or both')
  const facts = packageFacts(file)
  // Before anything is started for it.
  const taken = [mcpb === true ? bundleName(facts) : mcpb, registry === true ? 'server.json' : registry].find(
    path => path !== undefined && call.options.force !== true && isThere(path),
  )
  if (taken !== undefined) throw alreadyThere(taken)
  const files = mcpb === undefined ? undefined : bundleFiles(facts, call.options.include)
  let offer: OfferFacts | undefined
  await withClient({ ...call, words: [file], options: { ...call.options, auth: false } }, io, async ({ client }) => {
    offer = await asideOf(io).during('asking the server for its tools and prompts', offerFacts(client))
    return 0
  })
  if (offer === undefined) throw new CliError(`${clip(file)} did not list its tools and prompts`, undefined, { exit: 4 })
  return write({ facts, offer, files }, call.options, io)
}

/** What the files are written from. */
interface Parts {
  readonly facts: PackageFacts
  readonly offer: OfferFacts
  /** Undefined: no bundle is wanted. */
  readonly files: BundleFiles | undefined
}

/** Writes the bundle and server.json, and prints what was made. */
async function write({ facts, offer, files }: Parts, options: BundleOptions, io: Io): Promise<number> {
  const { mcpb, serverJson: registry, mcpbUrl, remote = [], variable: variables = [], force = false, format } = options
  const printer = printerOf(io)
  const { json, line } = printer
  const made: { file: string; bytes?: number; sha256?: string }[] = []
  let sha256: string | undefined
  if (mcpb !== undefined && files !== undefined) {
    const manifest = `${JSON.stringify(manifestOf({ facts, offer, variables, args: argumentsOf(facts) }), null, 2)}\n`
    const archive = archiveOf(files.files, manifest)
    const path = mcpb === true ? bundleName(facts) : mcpb
    if (format !== 'json') show(path, files, printer)
    await writeNewFile(path, archive, force)
    // Hexadecimal, as registries want it.
    sha256 = hash('sha256', archive, 'hex')
    made.push({ file: path, bytes: archive.length, sha256 })
  }
  if (registry !== undefined) {
    if (mcpbUrl !== undefined && sha256 === undefined)
      throw new CliError(
        '--mcpb-url needs the digest of the bundle, and no bundle is written',
        'Write the bundle in the same run: --mcpb',
      )
    const bundled = mcpbUrl === undefined || sha256 === undefined ? undefined : { url: mcpbUrl, sha256 }
    const path = registry === true ? 'server.json' : registry
    const document = serverJson({ facts, offer, variables, remotes: remote, bundle: bundled })
    await writeNewFile(path, `${JSON.stringify(document, null, 2)}\n`, force)
    made.push({ file: path })
  }
  const packed = files && { files: [...files.files.keys()], leftOut: files.leftOut }
  if (format === 'json') json({ made, tools: offer.tools.length, prompts: offer.prompts.length, ...packed })
  else
    for (const { file: path, bytes, sha256: digest } of made)
      line(digest === undefined ? path : `${path}  ${sizeText(bytes ?? 0)}  sha256 ${digest}`)
  return 0
}

/** What is about to be published: files of the package one by one, the packages it needs by their size. */
function show(path: string, { files, leftOut, bytes }: BundleFiles, { aside }: Printer): void {
  const nameOf = (file: string): string | undefined =>
    /^(?:node_modules\/(?:@[^/]+\/)?[^/]+\/?)+/.exec(file)?.[0].replace(/\/$/, '')
  const groups = Map.groupBy(files.keys(), file => nameOf(file) ?? '')
  aside.note(`${path} will contain ${files.size + 1} files, ${sizeText(bytes)}:`)
  for (const file of ['manifest.json', ...(groups.get('') ?? [])]) aside.note(`  ${file}`)
  for (const [name, inside] of groups) if (name !== '') aside.note(`  ${name} (${inside.length} files)`)
  for (const file of leftOut) aside.warn(`  left out, because its name looks like a secret: ${file}`)
}

/** A file that exports its server is served by the command of this package, which is then a dependency. */
function argumentsOf({ file, entry, dependencies, builds }: PackageFacts): readonly string[] {
  if (!/\.[cm]?js$/.test(entry))
    throw new CliError(
      `${clip(entry)} is not a JavaScript file, and hosts run bundles with a Node that may not run TypeScript`,
      builds ? 'Run npm run build, then pass the .js file that it writes' : 'Compile it, then pass the .js file',
    )
  const place = `\${__dirname}/${entry}`
  if (!exportsServer(file)) return [place]
  if (!dependencies.includes('vivarium'))
    throw new CliError(
      `${clip(entry)} exports a server, but vivarium, which serves it, is not a dependency of the package`,
      'Run npm install vivarium',
    )
  return [`\${__dirname}/node_modules/vivarium/bin/vivarium.mjs`, 'serve', place, '--stdio']
}

// The zip of a bundle: the same bytes for the same files, whenever and wherever it is made.

/** The file of a bundle, where no other is named. */
function bundleName({ name, version }: PackageFacts): string {
  return `${name.replace(/^@/, '').replaceAll('/', '-')}-${version}.mcpb`
}

/** A path inside an archive: relative, with slashes, and without a step upwards. Whoever unpacks it must stay in one folder. */
function checkedEntry(path: string): string {
  const parts = path.split('/')
  const fine = parts.every(part => part !== '' && part !== '.' && part !== '..') && !/[\\\p{Cc}\p{Cf}]|^[a-z]:/iu.test(path)
  if (fine) return path
  throw new CliError(`A bundle cannot contain a file with the path "${clip(path)}"`, 'Rename the file')
}

/** The first day that a zip can name. */
const noTime = new Date(1980, 0, 1)

/** `files`: paths in the archive, and where each lies. */
function archiveOf(files: ReadonlyMap<string, string>, manifest: string): Uint8Array {
  const entries: Zippable = { 'manifest.json': [Buffer.from(manifest), { mtime: noTime }] }
  for (const path of [...files.keys()].sort()) {
    if (path === 'manifest.json') continue
    entries[checkedEntry(path)] = [readFileSync(files.get(path) as string), { mtime: noTime }]
  }
  return zipSync(entries, { level: 9 })
}

/** Where a link leads does not matter: it is there, and whoever put it there chose where it leads. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** The failure for a file that would be overwritten. */
function alreadyThere(path: string): CliError {
  return new CliError(`The file ${clip(path, 200)} already exists`, 'Choose another name, or replace it with --force')
}

/** Replaced as a whole: of a link the link, not what it leads to. */
async function writeNewFile(path: string, data: string | Uint8Array, force: boolean): Promise<void> {
  if (force) {
    const beside = `${path}.${process.pid}.new`
    try {
      await writeFile(beside, data, { flag: 'wx' })
      await rename(beside, path)
    } catch (error) {
      await rm(beside, { force: true })
      throw error
    }
    return
  }
  try {
    await writeFile(path, data, { flag: 'wx' })
  } catch (error) {
    throw error instanceof Error && 'code' in error && error.code === 'EEXIST' ? alreadyThere(path) : error
  }
}
