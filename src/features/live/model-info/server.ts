/** Asking a host which model it runs. */
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { LiveHost } from '../hosts/messages.ts'
import { type ModelInfo, modelInfo, modelInfoShape } from './messages.ts'

export async function askModel(host: LiveHost, exchange?: Exchange): Promise<ModelInfo> {
  const answer = await host.request(modelInfo, {}, { exchange })
  if (modelInfoShape.check(answer) === undefined) return answer
  throw new McpError('invalid-answer', `The host's answer to ${modelInfo.name} is malformed`)
}
