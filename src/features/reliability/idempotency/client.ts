/** Using idempotency: a key of the runtime's own making for each call that changes something, where the server knows keys. */
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, extend, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { clientToolsPort, type ToolCallExtension, type ToolCallOptions, toolCalls } from '../../mcp/tools/messages.ts'
import { getKey, idempotencyExtension, keyHeader, keyPattern, keyRule, type WireStatus } from './messages.ts'

/** Asking after calls. */
export interface IdempotencyClientApi {
  /** What a server that knows idempotency keys knows of the call that was made under one. */
  callStatus(idempotencyKey: string, options?: RequestOptions): Promise<CallStatus>
}

/** What a call may say of its key. */
export interface IdempotencyCallOptions {
  /**
   * Names this call to a server that knows such keys: made again under the same one it is not done twice. Default: one of the
   * client's own, where the server knows keys and the tool may change something.
   */
  readonly idempotencyKey?: string
}

/** Gives calls that change something a key. */
export const idempotencyClient = defineClientFeature({
  name: 'idempotency',
  uses: [clientToolsPort],
  options: {},
  setup(kit) {
    const client: IdempotencyClientApi = {
      callStatus: async (key, options) =>
        callStatus(await kit.session.request(getKey, { idempotency_key: key }, kit.send(options))),
    }
    const knows = (): boolean => knowsKeys(kit.session.opened.conversation.peer)
    const keyed: ToolCallExtension = {
      name: 'idempotency',
      sends: (send, tool, { idempotencyKey: given }: ToolCallOptions & IdempotencyCallOptions) => {
        if (given !== undefined) checkKey(given)
        // Read-only calls need none: they can be repeated as they are.
        else if (!knows() || kit.port(clientToolsPort).known(tool)?.annotations?.readOnlyHint === true) return send
        return withKey(send, given ?? crypto.randomUUID(), given === undefined)
      },
      harmless: ({ headers }) => headers?.[keyHeader] !== undefined && knows(),
    }
    return {
      client,
      side: { capabilities: revision => declaration(revision, idempotencyExtension) },
      extensions: [extend(toolCalls, keyed)],
    }
  },
})

/** Whether the server does what comes under one key once. */
function knowsKeys(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, idempotencyExtension) !== undefined
}

/** Throws unless a key that was given can be one. */
function checkKey(key: string): void {
  if (!keyPattern.test(key)) throw new TypeError(`"${clip(key)}" is no idempotency key: use ${keyRule}`)
}

/** How long a key is needed that we made ourselves: for the repetitions of this call, which are over long before. */
const ownKeySeconds = 3_600

/** `own`: nobody else knows the key, so nobody comes back with it later, and it need not take up room for a day. */
function withKey(options: SendOptions, key: string, own = false): SendOptions {
  const said = options.meta?.[idempotencyExtension]
  const lasts = own ? { idempotency_ttl_seconds: ownKeySeconds } : {}
  return {
    ...options,
    meta: { ...options.meta, [idempotencyExtension]: { ...lasts, ...(isRecord(said) ? said : {}), idempotency_key: key } },
    headers: { ...options.headers, [keyHeader]: key },
  }
}

/** What is known of the call that was made under a key. */
export interface CallStatus {
  /** `indeterminate`: it was begun, and nobody knows how it ended. */
  readonly status: WireStatus['status']
  readonly tool: string | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
}

function callStatus({ status, tool, started_at, ended_at }: WireStatus): CallStatus {
  return { status, tool, startedAt: dateOf(started_at), endedAt: dateOf(ended_at) }
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}
