/**
 * Client side of idempotency: adds a generated key to each call that may change something, if the server supports keys; and
 * `client.callStatus`.
 */
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, extend, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { clientToolsPort, type ToolCallExtension, type ToolCallOptions, toolCalls } from '../../mcp/tools/messages.ts'
import { getKey, idempotencyExtension, keyHeader, keyPattern, keyRule, type WireStatus } from './messages.ts'

/** What the feature adds to the client. */
export interface IdempotencyClientApi {
  /** What the server knows about the call made with this key. */
  callStatus(idempotencyKey: string, options?: RequestOptions): Promise<CallStatus>
}

/** Options of a call. */
export interface IdempotencyCallOptions {
  /**
   * Identifies this call: repeated with the same key it is executed once. Default: a generated key, if the server supports keys and the
   * tool may change something.
   */
  readonly idempotencyKey?: string
}

/** The client feature: adds keys to calls. */
export const idempotencyClient = defineClientFeature({
  name: 'idempotency',
  uses: [clientToolsPort],
  options: {},
  setup(kit) {
    const client: IdempotencyClientApi = {
      callStatus: async (key, options) =>
        callStatus(await kit.session.request(getKey, { idempotency_key: key }, kit.send(options))),
    }
    /** Whether the server supports keys. */
    const knows = (): boolean => {
      const { peer } = kit.session.opened.conversation
      return peer !== undefined && declaredSettings(peer, idempotencyExtension) !== undefined
    }
    const keyed: ToolCallExtension = {
      name: 'idempotency',
      sends: (send, tool, { idempotencyKey: given }: ToolCallOptions & IdempotencyCallOptions) => {
        if (given !== undefined && !keyPattern.test(given))
          throw new TypeError(`"${clip(given)}" is not a valid idempotency key. Use ${keyRule}`)
        // Read-only calls can be repeated without a key.
        if (given === undefined && (!knows() || kit.port(clientToolsPort).known(tool)?.annotations?.readOnlyHint === true))
          return send
        return withKey(send, given)
      },
      harmless: ({ headers }) => headers?.[keyHeader] !== undefined && knows(),
    }
    return {
      client,
      side: { capabilities: revision => extensionCapability(revision, idempotencyExtension) },
      extensions: [extend(toolCalls, keyed)],
    }
  },
})

/** The lifetime of generated keys: only the retries of this call need them. */
const ownKeySeconds = 3_600

/** Adds a key. Without a given one it is generated here, so a short lifetime suffices. */
function withKey(options: SendOptions, given: string | undefined): SendOptions {
  const key = given ?? crypto.randomUUID()
  const said = options.meta?.[idempotencyExtension]
  const lasts = given === undefined ? { idempotency_ttl_seconds: ownKeySeconds } : {}
  return {
    ...options,
    meta: { ...options.meta, [idempotencyExtension]: { ...lasts, ...(isRecord(said) ? said : {}), idempotency_key: key } },
    headers: { ...options.headers, [keyHeader]: key },
  }
}

/** What the server knows about the call with a key. */
export interface CallStatus {
  /** The state of the call. `indeterminate`: it was started, and its outcome is unknown. */
  readonly status: WireStatus['status']
  /** The tool that was called. Undefined if the key is unknown. */
  readonly tool: string | undefined
  /** When the call started. Undefined if the key is unknown. */
  readonly startedAt: Date | undefined
  /** When the call ended. Undefined if it has not. */
  readonly endedAt: Date | undefined
}

function callStatus({ status, tool, started_at, ended_at }: WireStatus): CallStatus {
  return { status, tool, startedAt: dateOf(started_at), endedAt: dateOf(ended_at) }
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}
