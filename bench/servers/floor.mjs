/**
 * The floor's answers: what plain Node needs to answer MCP and nothing more. No validation, no limits,
 * one `switch`. It is the yardstick, so it answers in the right shape for both revisions, and honestly:
 * each result is built and serialised anew.
 */
import { echo, form20, info, plainTools } from './tools.mjs'

const MODERN = '2026-07-28'
const META = { 'io.modelcontextprotocol/serverInfo': info }
const CAPABILITIES = { tools: {} }

/** Makes `answer(message)`, which returns the response object, or undefined for a notification. */
export function createFloor(mode) {
  const tools = plainTools(mode)

  return function answer(message) {
    const { id, method, params } = message
    if (id === undefined) return undefined
    const modern = params?._meta?.['io.modelcontextprotocol/protocolVersion'] === MODERN
    switch (method) {
      case 'tools/call': {
        const text = params.name === 'echo' ? echo(params.arguments) : form20(params.arguments)
        const content = [{ type: 'text', text }]
        return respond(id, modern ? { resultType: 'complete', content, _meta: META } : { content })
      }
      case 'tools/list':
        return respond(id, modern ? { ...cacheable(), tools } : { tools })
      case 'initialize':
        return respond(id, { protocolVersion: params.protocolVersion, capabilities: CAPABILITIES, serverInfo: info })
      case 'server/discover':
        return respond(id, { ...cacheable(), supportedVersions: [MODERN], capabilities: CAPABILITIES })
      case 'ping':
        return respond(id, {})
      default:
        return { jsonrpc: '2.0', id, error: { code: -32601, message: `Unknown method ${method}` } }
    }
  }
}

const respond = (id, result) => ({ jsonrpc: '2.0', id, result })
const cacheable = () => ({ resultType: 'complete', ttlMs: 0, cacheScope: 'public', _meta: META })
