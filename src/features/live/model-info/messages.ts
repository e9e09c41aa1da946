/** Which model runs (MCP Live 0.2 §12). */
import { request, sessionIds } from '../../../engine/method.ts'
import { array, integer, object, string } from '../../../jsonrpc/shape.ts'

export interface ModelInfo {
  readonly id: string
  readonly vendor: string
  readonly contextWindow: number
  readonly capabilities: readonly string[]
}

export const modelInfoShape = object({ id: string, vendor: string, contextWindow: integer, capabilities: array(string) })

export const modelInfo = request<ModelInfo>()({ name: 'model/info', to: 'client', in: sessionIds, params: object({}) })
