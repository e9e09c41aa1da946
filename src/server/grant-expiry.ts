/** What grants mean for what lasts: subscriptions, events and whatever else is opened under one. */
import type { Engine } from '../engine/engine.ts'
import type { Asker, Exchange } from '../engine/exchange.ts'
import { declared } from '../engine/extensions.ts'
import type { SubscribersOptions } from '../features/mcp/resources/subscribers.ts'
import type { Lapsing } from '../features/mcp/subscriptions/listeners.ts'
import type { Hearing } from '../features/reliability/events/subscribe-request.ts'
import { permissionsEnded, permissionsExtension, presentedIn } from '../features/reliability/permissions/messages.ts'
import type { PermissionsServer } from '../features/reliability/permissions/server.ts'

/** Ends what was opened under a grant when that is over. */
export type GrantExpiry = { readonly listens: Lapsing } & Required<Pick<SubscribersOptions, 'lapses' | 'lapsed'>>

/** What ends with a grant says so to whoever knows of grants. */
export function grantExpiryOf({ lapses }: PermissionsServer, engine: () => Engine): GrantExpiry {
  return {
    lapses,
    listens: ({ admission }, ended) =>
      admission && lapses(admission, reason => ended(reason, { [permissionsExtension]: { ended: reason } })),
    lapsed: (conversation, uris, reason) => {
      const { peer } = conversation
      if (peer !== undefined && declared(peer, permissionsExtension) !== undefined)
        engine().notify(conversation, permissionsEnded, { reason, uris })
    },
  }
}

/** What is opened under a grant is, also by a tool that needs none. */
export async function admitByGrant({ rights }: PermissionsServer, exchange: Exchange): Promise<void> {
  if (exchange.admission === undefined && presentedIn(exchange.meta) !== undefined) await (await rights()).admit(exchange)
}

/** Whether a caller may hear of an event, by what it was granted. */
export async function eventVisibility(
  { rights }: PermissionsServer,
  asker: Asker,
  name: string,
  scopes: readonly string[],
  guarded: boolean,
): Promise<Hearing> {
  const decision = await (await rights()).judge(asker, { name, scopes, scopesFor: undefined })
  if (decision.kind === 'allow') return { refusal: undefined, guarded }
  const why = decision.kind === 'ask' ? 'a grant has an obligation that nothing here meets' : decision.why
  return { refusal: `The event "${name}" needs the scopes ${scopes.join(' ')}: ${why}`, guarded }
}
