/** Requests in the words of that implementation: methods are tools, and what belongs into `_meta` lies beside the arguments. */
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { bareMembers } from './dialect.ts'

/** A method that such servers have as a tool. */
interface MethodTool {
  readonly name: string
  /** Undefined where the tool cannot be asked that. */
  arguments(params: Params): Params | undefined
}

const same = ({ _meta, ...params }: Params): Params => params

export const asTool: ReadonlyMap<string, MethodTool> = new Map([
  ['transaction/begin', { name: 'begin_transaction', arguments: same }],
  ['transaction/commit', { name: 'commit_transaction', arguments: same }],
  ['transaction/rollback', { name: 'rollback_transaction', arguments: same }],
  [
    'permissions/check',
    // One at a time; its schema wants to hear of scopes, although they decide nothing.
    {
      name: 'check_permissions',
      arguments: (params: Params) => ('checks' in params ? undefined : { scopes_held: [], ...same(params) }),
    },
  ],
  ['permissions/negotiate', { name: 'negotiate_scopes', arguments: same }],
])

/** Its servers read the members beside the arguments, its clients write a key into `_meta` too: both are there, and the common form. */
export function bareCall(params: Params): Params {
  const meta = isRecord(params['_meta']) ? params['_meta'] : undefined
  if (meta === undefined) return params
  const bare: Record<string, unknown> = {}
  for (const [name, extension] of bareMembers) {
    const said = meta[extension]
    const value = isRecord(said) ? said[name] : undefined
    if (value !== undefined && value !== '') bare[name] = value
  }
  const key = bare['idempotency_key']
  return { ...params, ...bare, _meta: key === undefined ? meta : { ...meta, idempotency_key: key } }
}
