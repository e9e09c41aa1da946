/** The manifest of an MCPB bundle (manifest version 0.3): what it is, how it is started, what it offers, what the user has to give. */

import { isSecretName } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { CliError } from '../io.ts'
import type { OfferFacts, PackageFacts } from './package-facts.ts'

/** The version of the MCPB format that is written. */
const manifestVersion = '0.3'

/** What a manifest is made from. */
interface ManifestInput {
  readonly facts: PackageFacts
  readonly offer: OfferFacts
  /** Become `user_config`, which the host asks the user for. */
  readonly variables: readonly BundleVariable[]
  /** Behind `node`: files of the bundle are named from `${__dirname}` on. */
  readonly args: readonly string[]
}

/** The manifest of a bundle. Throws where package.json lacks what it must say. */
export function manifestOf({ facts, offer, variables, args }: ManifestInput): Record<string, unknown> {
  const { author, description } = facts
  if (author === undefined) throw new CliError('package.json has no "author", which a bundle requires', 'Add it: "author": "…"')
  if (description === undefined)
    throw new CliError('package.json has no "description", which a bundle requires', 'Add it: "description": "…"')
  return given({
    manifest_version: manifestVersion,
    name: facts.name,
    display_name: offer.title,
    version: facts.version,
    description,
    author,
    repository: facts.repository === undefined ? undefined : { type: 'git', url: facts.repository },
    homepage: facts.homepage,
    support: facts.support,
    server: {
      type: 'node',
      entry_point: facts.entry,
      mcp_config: given({ command: 'node', args, env: some(variables) && environment(variables) }),
    },
    tools: some(offer.tools),
    prompts: some(offer.prompts),
    prompts_generated: offer.morePrompts ? true : undefined,
    keywords: some(facts.keywords),
    license: facts.license,
    compatibility: facts.node === undefined ? undefined : { runtimes: { node: facts.node } },
    user_config: some(variables) && userConfig(variables),
  })
}

/** The variables of the program, each filled in by the host from its `user_config`. */
function environment(variables: readonly BundleVariable[]): Record<string, string> {
  return Object.fromEntries(variables.map(({ name }) => [name, `\${user_config.${name.toLowerCase()}}`]))
}

/** What the host asks the user for before it starts the server. */
function userConfig(variables: readonly BundleVariable[]): Record<string, unknown> {
  const entries = variables.map(({ name, about, secret }) => [
    name.toLowerCase(),
    { type: 'string', title: name, description: about, required: true, ...(secret && { sensitive: true }) },
  ])
  return Object.fromEntries(entries)
}

/** The list; undefined where it is empty: then a manifest has no such member. */
function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}

/** The version of the format of server.json that is written. */
const serverSchema = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

/** What server.json is made from. */
interface ServerJsonInput {
  readonly facts: PackageFacts
  readonly offer: OfferFacts
  readonly variables: readonly BundleVariable[]
  /** Addresses at which it is served. */
  readonly remotes: readonly string[]
  /** The bundle, where it can be fetched. */
  readonly bundle: { readonly url: string; readonly sha256: string } | undefined
}

/** A name in the registry: a namespace and a name. */
const namePattern = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/
/** The registry takes no more. */
const descriptionLength = 100

/** The document for the registry of servers. Throws where package.json lacks what it must say. */
export function serverJson({ facts, offer, variables, remotes, bundle }: ServerJsonInput): Record<string, unknown> {
  const { mcpName, description, version, repository, homepage } = facts
  if (mcpName === undefined || !namePattern.test(mcpName) || mcpName.length > 200)
    throw new CliError(
      mcpName === undefined
        ? 'package.json has no "mcpName", the name of the server in the registry'
        : `"mcpName" in package.json is not a valid registry name: ${clip(mcpName)}`,
      'Add it: "mcpName": "io.github.you/notes"',
    )
  if (description === undefined)
    throw new CliError('package.json has no "description", which server.json requires', 'Add it: "description": "…"')
  const packages = packagesOf(facts, variables, bundle)
  if (packages.length === 0 && remotes.length === 0)
    throw new CliError(
      `server.json would not say where to get ${clip(facts.name)}: the package is private or has no "bin", and --remote and --mcpb-url are missing`,
      'Add "bin" to package.json, or pass the address of the server: --remote https://host/mcp',
    )
  return given({
    $schema: serverSchema,
    name: mcpName,
    title: offer.title?.slice(0, 100),
    description: shortened(description),
    repository: repository === undefined ? undefined : { url: repository, source: sourceOf(repository) },
    version,
    websiteUrl: homepage,
    packages: some(packages),
    remotes: some(remotes.map(url => ({ type: 'streamable-http', url }))),
  })
}

/** The packages by which the server can be had: from npm, and as a bundle. */
function packagesOf(
  facts: PackageFacts,
  variables: readonly BundleVariable[],
  bundle: ServerJsonInput['bundle'],
): Record<string, unknown>[] {
  const common = {
    transport: { type: 'stdio' },
    ...(variables.length > 0 && {
      environmentVariables: variables.map(({ name, about, secret }) => ({
        name,
        description: about,
        isRequired: true,
        ...(secret && { isSecret: true }),
      })),
    }),
  }
  const { isPrivate, hasCommand, name, version } = facts
  const npm = { registryType: 'npm', identifier: name, version, runtimeHint: 'npx', ...common }
  const mcpb = bundle && { registryType: 'mcpb', identifier: bundle.url, version, fileSha256: bundle.sha256, ...common }
  return [...(isPrivate || !hasCommand ? [] : [npm]), ...(mcpb === undefined ? [] : [mcpb])]
}

/** At a word's end, where there is one. */
function shortened(text: string): string {
  if (text.length <= descriptionLength) return text
  const cut = text.slice(0, descriptionLength - 1)
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), descriptionLength / 2)).trimEnd()}…`
}

/** The kind of a repository, by its host. */
function sourceOf(url: string): string {
  const { hostname } = new URL(url)
  return /(^|\.)github\.com$/.test(hostname) ? 'github' : /(^|\.)gitlab\.com$/.test(hostname) ? 'gitlab' : hostname
}

/** A variable that the user has to give. */
export interface BundleVariable {
  readonly name: string
  /** What it is, in a sentence that the user reads. */
  readonly about: string
  /** Hosts hide it and keep it encrypted. */
  readonly secret: boolean
}

/** Reads `NAME` or `NAME=what it is`. */
export function variableOf(word: string): BundleVariable {
  const [, name = '', about] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? []
  if (name === '') throw new TypeError(`"${clip(word)}" is not a valid variable. Write NAME or NAME=description`)
  return { name, about: about ?? `Value of ${name}`, secret: isSecretName(name) || /key|pass|auth/i.test(name) }
}
