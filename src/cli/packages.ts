/** npm packages as targets: the one that is installed here, else the one that `npx` fetches. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from '../client/target.ts'
import { isRecord } from '../jsonrpc/message.ts'

/** How a word names a package: `npm:name` for sure, `@scope/name` and `name@version` by their look, any other word maybe. */
export function packageIn(word: string): { readonly spec: string; readonly sure: boolean } | undefined {
  const spec = word.startsWith('npm:') ? word.slice(4) : word
  if (!/^(@[\w.-]+\/)?[\w][\w.-]*(@[\w.^~<>=*-]+)?$/.test(spec)) return undefined
  return { spec, sure: word.startsWith('npm:') || spec.includes('@') }
}

export interface PackageProgram {
  readonly command: Command
  /** What is about to be run, in a sentence. */
  readonly says: string
}

/** The program of a package that is installed in this folder or one above; undefined where none is. */
export function installedProgram(spec: string, cwd: string): PackageProgram | undefined {
  const { name, version } = partsOf(spec)
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const place = join(folder, 'node_modules', ...name.split('/'))
    if (existsSync(join(place, 'package.json'))) {
      const { bin, version: has } = factsOf(place)
      // Another version than the one that was asked for is another program.
      if (bin === undefined || (version !== undefined && version !== has)) return undefined
      return { command: programOf(join(place, bin)), says: `${name} ${has}, installed in ${folder}` }
    }
    if (dirname(folder) === folder) return undefined
  }
}

export function fetchedProgram(spec: string, env: Readonly<Record<string, string | undefined>>): PackageProgram {
  return {
    command: { command: process.platform === 'win32' ? 'npx.cmd' : 'npx', args: ['-y', spec], env: networkIn(env) },
    says: `${spec} is not installed here: npx -y ${spec} fetches and runs it`,
  }
}

/** What a machine needs to reach a registry where it does not do so directly, or trusts somebody of its own. */
const network =
  /^(https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(file|dir)|npm_config_(registry|cafile|userconfig|(https?-?)?proxy))$/i

/** Those of the variables by which programs reach the network. */
export function networkIn(env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).filter((pair): pair is [string, string] => network.test(pair[0]) && (pair[1] ?? '') !== ''),
  )
}

function partsOf(spec: string): { readonly name: string; readonly version: string | undefined } {
  const at = spec.indexOf('@', 1)
  return at === -1 ? { name: spec, version: undefined } : { name: spec.slice(0, at), version: spec.slice(at + 1) }
}

function programOf(file: string): Command {
  const isNode = /\.[cm]?js$/.test(file) || /^#!.*\bnode\b/.test(readFileSync(file, 'utf8').slice(0, 200))
  return isNode ? { command: process.execPath, args: [file] } : { command: file }
}

/** Its only command, else the one that is called like the package, else the first. */
function factsOf(place: string): { readonly bin: string | undefined; readonly version: string } {
  const facts: unknown = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  const { name = '', version = '', bin } = isRecord(facts) ? facts : {}
  const bins: readonly (readonly [string, unknown])[] = isRecord(bin) ? Object.entries(bin) : [['', bin]]
  const own = String(name).split('/').at(-1)
  const [, file] = bins.find(([called]) => called === own) ?? bins[0] ?? []
  return { bin: typeof file === 'string' ? file : undefined, version: String(version) }
}
