/** What tools say of their media, and of where their results come from: how the two features hang on a server. */
import type { Problem } from '../core/problem.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Side } from '../engine/plan.ts'
import { type Explain, failedResult } from '../features/mcp/tools/failed.ts'
import type { ToolFacts } from '../features/mcp/tools/server.ts'
import { mediaMeta, type WithMedia } from '../features/reliability/media/facts.ts'
import { mediaOf } from '../features/reliability/media/messages.ts'
import { mediaServer } from '../features/reliability/media/server.ts'
import { provenanceServer, type Sourced } from '../features/reliability/provenance/server.ts'
import type { ServerOptions } from './options.ts'
import type { ReliabilityParts } from './reliability.ts'

export interface ContentFacts extends WithMedia, Sourced {}

export interface Artifacts {
  readonly sides: readonly Side[]
  /** A tool is offered that says this of itself. */
  declare(facts: ContentFacts): void
}

/** The kinds of the options that a tool may have for it. */
export const artifactKinds = { media: 'object', provenance: 'boolean' } as const

/** What a list tells of a tool. Throws where what was said makes no sense. */
export const artifactMeta = mediaMeta

export function artifacts(
  { name, version }: ServerOptions,
  { tools, clock, trace, began }: ReliabilityParts,
  explain: Explain,
): Artifacts {
  const factsOf = (tool: string): (ContentFacts & Pick<ToolFacts, 'scopes'>) | undefined => tools().get(tool)?.facts
  const media = mediaServer({
    declares: tool => factsOf(tool)?.media !== undefined,
    tool: tool => {
      const entry = tools().get(tool)?.tool
      const said = mediaOf(entry?._meta)
      return entry === undefined || said === undefined ? undefined : { media: said, inputSchema: entry.inputSchema }
    },
    failed: (exchange: Exchange, problem: Problem) => failedResult(exchange, problem, explain),
    trace,
    began,
  })
  const provenance = provenanceServer({
    server: { name, version },
    clock,
    trace,
    sourced: tool => factsOf(tool)?.provenance === true,
    began,
  })
  return {
    // Stamped last: what was judged is what is stamped.
    sides: [provenance.side, media.side],
    declare: facts => {
      media.declare(facts)
      provenance.declare(facts)
    },
  }
}
