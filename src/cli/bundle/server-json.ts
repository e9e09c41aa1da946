/** `server.json` for the registry of MCP servers (schema 2025-12-11): where the server is to be had, and how it is started. */
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'
import type { OfferFacts, PackageFacts } from './facts.ts'
import type { Variable } from './variables.ts'

export const serverSchema = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

export interface ServerJsonInput {
  readonly facts: PackageFacts
  readonly offer: OfferFacts
  readonly variables: readonly Variable[]
  /** Addresses at which it is served. */
  readonly remotes: readonly string[]
  /** The bundle, where it can be fetched. */
  readonly bundle: { readonly url: string; readonly sha256: string } | undefined
}

const namePattern = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/
/** The registry takes no more. */
const descriptionLength = 100

export function serverJson({ facts, offer, variables, remotes, bundle }: ServerJsonInput): Record<string, unknown> {
  const { mcpName, description, version, repository, homepage } = facts
  if (mcpName === undefined || !namePattern.test(mcpName) || mcpName.length > 200)
    throw new CliError(
      1,
      mcpName === undefined
        ? 'package.json has no mcpName, by which the registry knows the server'
        : `The mcpName ${clip(mcpName)} is none`,
      'Add it: "mcpName": "io.github.you/notes"',
    )
  if (description === undefined) throw new CliError(1, 'package.json has no description', 'Add it: "description": "…"')
  const packages = packagesOf(facts, variables, bundle)
  if (packages.length === 0 && remotes.length === 0)
    throw new CliError(
      1,
      `${clip(facts.name)} can be had nowhere: its package is private or has no "bin", and neither --remote nor --mcpb-url is given`,
      'Give package.json a "bin", or the address where it is served: --remote https://host/mcp',
    )
  return {
    $schema: serverSchema,
    name: mcpName,
    ...(offer.title !== undefined && { title: offer.title.slice(0, 100) }),
    description: shortened(description),
    ...(repository !== undefined && { repository: { url: repository, source: sourceOf(repository) } }),
    version,
    ...(homepage !== undefined && { websiteUrl: homepage }),
    ...(packages.length > 0 && { packages }),
    ...(remotes.length > 0 && { remotes: remotes.map(url => ({ type: 'streamable-http', url })) }),
  }
}

function packagesOf(
  facts: PackageFacts,
  variables: readonly Variable[],
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
  const npm =
    facts.isPrivate || !facts.hasCommand
      ? []
      : [{ registryType: 'npm', identifier: facts.name, version: facts.version, runtimeHint: 'npx', ...common }]
  const mcpb =
    bundle === undefined
      ? []
      : [{ registryType: 'mcpb', identifier: bundle.url, version: facts.version, fileSha256: bundle.sha256, ...common }]
  return [...npm, ...mcpb]
}

/** At a word's end, where there is one. */
function shortened(text: string): string {
  if (text.length <= descriptionLength) return text
  const cut = text.slice(0, descriptionLength - 1)
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), descriptionLength / 2)).trimEnd()}…`
}

function sourceOf(url: string): string {
  const { hostname } = new URL(url)
  return /(^|\.)github\.com$/.test(hostname) ? 'github' : /(^|\.)gitlab\.com$/.test(hostname) ? 'gitlab' : hostname
}
