/** What rules refuse of resources and prompts: reading them, watching them, and having their arguments completed. */
import type { Exchange } from '../../engine/exchange.ts'
import type { Layer } from '../../engine/stages.ts'
import { aimOf } from '../../features/mcp/authorization/messages.ts'
import { callDenied } from './gate.ts'
import { judgedOf } from './options.ts'
import type { CallVerdict, ToolPolicy } from './tool-policy.ts'
import { readingOf, type VisibilityLayersParts } from './visibility-layers.ts'

export function readingLayer(parts: VisibilityLayersParts): Layer {
  return {
    stage: 'decide',
    methods: ['resources/read', 'resources/subscribe', 'prompts/get', 'completion/complete'],
    when: exchange => parts.policy().decidesReading && verdictOn(parts, exchange)?.[1].do === 'deny',
    run: (exchange, next) => {
      const said = verdictOn(parts, exchange)
      if (said?.[1].do === 'deny') throw callDenied(...said)
      return next()
    },
  }
}

function verdictOn(parts: VisibilityLayersParts, exchange: Exchange): readonly [ToolPolicy, CallVerdict] | undefined {
  const [kind, name] = aimOf(exchange) ?? []
  if (kind === undefined || name === undefined || kind === 'tool') return undefined
  const policy = readingOf(parts, kind, name)
  return policy && [policy, policy.judge(judgedOf(parts.clients, exchange.caller, {}))]
}
