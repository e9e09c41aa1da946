/** What is known of a server that is to be published: its package says who makes it, the server itself what it offers. */

import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type { Client } from '../../client/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { given, isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../io.ts'
import { foldersFrom, packageIn } from '../own-package.ts'

/** What package.json says of a server. */
export interface PackageFacts {
  /** The server's file, as it was named. */
  readonly file: string
  /** The folder of package.json. */
  readonly root: string
  /** The server's file, seen from there. */
  readonly entry: string
  readonly name: string
  readonly version: string
  readonly description: string | undefined
  /** Undefined where package.json names none; a bundle must name one. */
  readonly author: { readonly name: string; readonly email?: string; readonly url?: string } | undefined
  readonly license: string | undefined
  readonly homepage: string | undefined
  /** Where bugs are reported. */
  readonly support: string | undefined
  /** As an address that a browser opens. */
  readonly repository: string | undefined
  readonly keywords: readonly string[]
  /** Its name in the registry of servers, by the member that npm packages prove it with. */
  readonly mcpName: string | undefined
  /** It is not published to npm. */
  readonly isPrivate: boolean
  /** It has a `bin`, so `npx` can start it. */
  readonly hasCommand: boolean
  /** It has a script that builds it. */
  readonly builds: boolean
  /** The range of Node versions that it runs on. */
  readonly node: string | undefined
  /** The list of what is published; undefined where package.json has none. */
  readonly files: readonly string[] | undefined
  /** The names of the packages that it needs at runtime. */
  readonly dependencies: readonly string[]
}

/** What a server says it offers. */
export type OfferFacts = Awaited<ReturnType<typeof offerFacts>>

/** Reads the package.json above the file. */
export function packageFacts(file: string): PackageFacts {
  const path = resolve(file)
  const root = rootOf(dirname(path))
  if (!existsSync(path)) throw missing(file, root)
  if (root === undefined)
    throw new CliError(`Neither the folder of ${clip(file)} nor a folder above it has a package.json`, 'Create one: npm init')
  const of = packageIn(root)
  const { engines, bugs, files, keywords, dependencies } = of
  return {
    file,
    root,
    entry: relative(root, path).replaceAll('\\', '/'),
    name: checkedName(needed(of['name'], 'name')),
    version: checkedVersion(needed(of['version'], 'version')),
    description: text(of['description']),
    author: authorOf(of['author']),
    license: text(of['license']),
    homepage: text(of['homepage']),
    support: text(isRecord(bugs) ? bugs['url'] : bugs),
    repository: repositoryOf(of['repository']),
    keywords: Array.isArray(keywords) ? keywords.filter(word => typeof word === 'string') : [],
    mcpName: text(of['mcpName']),
    isPrivate: of['private'] === true,
    hasCommand: of['bin'] !== undefined,
    builds: isRecord(of['scripts']) && of['scripts']['build'] !== undefined,
    node: text(isRecord(engines) ? engines['node'] : undefined),
    files: Array.isArray(files) ? files.filter(word => typeof word === 'string') : undefined,
    dependencies: isRecord(dependencies) ? Object.keys(dependencies) : [],
  }
}

/** The file that the package of this folder names, for whoever names none. */
export function mainFile(): string {
  const root = rootOf(process.cwd())
  const { main } = root === undefined ? {} : packageIn(root)
  if (root === undefined || typeof main !== 'string')
    throw new CliError('The server file is missing', 'Pass the file of the server, or set "main" in package.json')
  return relative('.', join(root, main))
}

/** The failure for a file that is not there; where a build would make it, that is the fix. */
function missing(file: string, root: string | undefined): CliError {
  const { scripts } = root === undefined ? {} : packageIn(root)
  const builds = isRecord(scripts) && scripts['build'] !== undefined && /\.[cm]?js$/.test(file)
  return new CliError(
    `The file ${clip(file)} does not exist`,
    builds ? 'Build it: npm run build' : 'Pass the path of the server file',
  )
}

/** Asks the server, as any client would. */
export async function offerFacts(mcp: Client) {
  const tools: { name: string; description?: string }[] = []
  for await (const { name, description } of mcp.tools()) tools.push({ name, ...given({ description }) })
  /** With `${arguments.name}` in the place of each argument. */
  const prompts: { name: string; text: string; description?: string; arguments?: string[] }[] = []
  /** Some prompts could not be written down without a call. */
  let morePrompts = false
  for await (const prompt of mcp.prompts()) {
    const names = (prompt.arguments ?? []).map(({ name }) => name)
    const words = await promptText(mcp, prompt.name, names)
    if (words === undefined) morePrompts = true
    else {
      const described = given({ description: prompt.description, arguments: names.length > 0 ? names : undefined })
      prompts.push({ name: prompt.name, text: words, ...described })
    }
  }
  return { title: mcp.server?.title, tools, prompts, morePrompts }
}

/** Filled in with the placeholders of the bundle; a prompt that minds is one that is made at runtime. */
async function promptText(mcp: Client, name: string, args: readonly string[]): Promise<string | undefined> {
  try {
    const { messages } = await mcp.getPrompt(name, Object.fromEntries(args.map(arg => [arg, `\${arguments.${arg}}`])))
    const texts = messages.map(({ content }) =>
      isRecord(content) && content['type'] === 'text' ? text(content['text']) : undefined,
    )
    return texts.every(each => each !== undefined) ? texts.join('\n\n') : undefined
  } catch {
    return undefined
  }
}

/** The folder of the package that a folder is part of. */
function rootOf(folder: string): string | undefined {
  return foldersFrom(folder).find(at => existsSync(join(at, 'package.json')))
}

/** A text that says something. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** A member that package.json must have. */
function needed(value: unknown, member: string): string {
  const found = text(value)
  if (found === undefined) throw new CliError(`package.json has no "${member}"`, `Add it: "${member}": "…"`)
  return found
}

/** `Name <mail> (url)`, or an object. */
function authorOf(value: unknown): PackageFacts['author'] {
  if (isRecord(value)) {
    const [name, email, url] = [text(value['name']), text(value['email']), text(value['url'])]
    return name === undefined ? undefined : { name, ...given({ email, url }) }
  }
  const [, name = '', email, url] = /^([^<(]*)(?:<([^>]*)>)?\s*(?:\(([^)]*)\))?$/.exec(text(value) ?? '') ?? []
  if (name.trim() === '') return undefined
  return { name: name.trim(), ...given({ email, url }) }
}

/** As an address that a browser opens: `git+https://…/x.git`, `github:owner/x`, `owner/x`. */
function repositoryOf(value: unknown): string | undefined {
  const said = text(isRecord(value) ? value['url'] : value)
  if (said === undefined) return undefined
  const short = /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(said)?.[1]
  const url =
    short === undefined ? said.replace(/^git\+/, '').replace(/^(git|ssh):\/\/(git@)?/, 'https://') : `https://github.com/${short}`
  return URL.canParse(url) && /^https?:/.test(url) ? url.replace(/\.git$/, '') : undefined
}

/** As npm takes them: a name, or a scope and a name. No dot at the beginning, so no `..`. */
const packageName = /^(@[a-z0-9~_-][a-z0-9._~-]*\/)?[a-z0-9~_-][a-z0-9._~-]*$/i
/** https://semver.org, without a limit on what its parts mean. */
const version = /^\d{1,16}\.\d{1,16}\.\d{1,16}(-[0-9a-z-]+(\.[0-9a-z-]+)*)?(\+[0-9a-z-]+(\.[0-9a-z-]+)*)?$/i

/** The most characters of a name that npm takes. */
const longest = 214

/** Whether npm takes it as the name of a package. */
export function isPackageName(name: string): boolean {
  return name.length <= longest && packageName.test(name)
}

/** The name, or a failure that shows what one looks like. */
function checkedName(name: string): string {
  if (isPackageName(name)) return name
  throw new CliError(
    `"name" in package.json is not a valid npm package name: "${clip(name)}"`,
    'Write "name": "notes", or "@you/notes"',
  )
}

/** The version, or a failure that shows what one looks like. */
function checkedVersion(text: string): string {
  if (text.length <= 128 && version.test(text)) return text
  throw new CliError(`"version" in package.json is not a valid version: "${clip(text)}"`, 'Write "version": "1.2.3"')
}
