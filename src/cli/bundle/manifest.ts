/** The manifest of an MCPB bundle (manifest version 0.3): what it is, how it is started, what it offers, what the user has to give. */
import { CliError } from '../exit.ts'
import type { OfferFacts, PackageFacts } from './facts.ts'
import type { Variable } from './variables.ts'

export const manifestVersion = '0.3'

export interface ManifestInput {
  readonly facts: PackageFacts
  readonly offer: OfferFacts
  readonly variables: readonly Variable[]
  /** Behind `node`: files of the bundle are named from `${__dirname}` on. */
  readonly args: readonly string[]
}

export function manifestOf({ facts, offer, variables, args }: ManifestInput): Record<string, unknown> {
  const { author, description } = facts
  if (author === undefined) throw new CliError(1, 'package.json names no author, and a bundle must', 'Add it: "author": "…"')
  if (description === undefined)
    throw new CliError(1, 'package.json has no description, and a bundle must', 'Add it: "description": "…"')
  return defined({
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
      mcp_config: defined({ command: 'node', args, env: environment(variables) }),
    },
    tools: offer.tools.length === 0 ? undefined : offer.tools,
    prompts: offer.prompts.length === 0 ? undefined : offer.prompts,
    prompts_generated: offer.morePrompts ? true : undefined,
    keywords: facts.keywords.length === 0 ? undefined : facts.keywords,
    license: facts.license,
    compatibility: facts.node === undefined ? undefined : { runtimes: { node: facts.node } },
    user_config: userConfig(variables),
  })
}

function environment(variables: readonly Variable[]): Record<string, string> | undefined {
  if (variables.length === 0) return undefined
  return Object.fromEntries(variables.map(({ name }) => [name, `\${user_config.${name.toLowerCase()}}`]))
}

function userConfig(variables: readonly Variable[]): Record<string, unknown> | undefined {
  if (variables.length === 0) return undefined
  const entries = variables.map(({ name, about, secret }) => [
    name.toLowerCase(),
    { type: 'string', title: name, description: about, required: true, ...(secret && { sensitive: true }) },
  ])
  return Object.fromEntries(entries)
}

function defined(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
