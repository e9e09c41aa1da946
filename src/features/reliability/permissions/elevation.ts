/** Where a user can grant what is missing: an https page that clients are asked to open, and never open by themselves. */
import type { GrantDenial } from '../../../core/grant/decide.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { elicit, takesElicitation } from '../../mcp/elicitation/messages.ts'
import type { Judgement } from './rights.ts'
import type { Aim, PermissionsParts } from './server.ts'
import { sessionName } from './sessions.ts'

/** Undefined where there is none, or none that is https. */
export function elevationOf(
  { elevationUrl }: PermissionsParts,
  { caller, engine }: Exchange,
  { name }: Aim,
  { admission }: Judgement,
  { missing }: GrantDenial,
): string | undefined {
  const session = admission === undefined ? undefined : sessionName(admission.owner, admission.id)
  const url = elevationUrl?.(missing, { tool: name, principal: caller.principal, session })
  if (url === undefined || URL.parse(url)?.protocol === 'https:') return url
  engine.trace('elevation-url-refused', new TypeError('permissions.elevationUrl must give an https address'))
  return undefined
}

/** Asks the user to open the page. True: opened, so that it is worth looking again. */
export async function offerElevation(exchange: Exchange, { name }: Aim, { missing }: GrantDenial, url: string): Promise<boolean> {
  if (exchange.route.method.asks !== true || !takesElicitation(exchange.peer, 'url')) return false
  const elicitationId = await exchange.once('elevation', () => crypto.randomUUID())
  const message = `${exchange.engine.info.name}: ${name} needs ${missing.join(', ')}. Open the page to grant that?`
  try {
    const { action } = await exchange.ask(
      elicit,
      { mode: 'url', message, url, elicitationId },
      {
        kind: 'elevate',
        key: `elevate-${elicitationId}`,
        requires: { elicitation: { url: {} } },
        allowed: true,
        accepts: answer => isRecord(answer) && typeof answer['action'] === 'string',
      },
    )
    return action === 'accept'
  } catch (error) {
    // Whoever cannot be asked is refused like everybody else.
    if (error instanceof McpError && unanswered.has(error.kind)) return false
    throw error
  }
}

const unanswered = new Set(['capability-missing', 'remote', 'timeout', 'invalid-answer', 'invalid-result'])
