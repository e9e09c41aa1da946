import { describe, expect, it } from 'vitest'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { classify } from './classify.ts'
import { problemExtension } from './messages.ts'

const remote = (code: number, data?: unknown, status?: number): McpError =>
  new McpError('remote', 'No', { code, data, ...(status === undefined ? {} : { status }) })
const http = (status: number, headers = {}): ConnectionError => new ConnectionError('status', 'No', { status, headers })
const told = { code: 'TOKEN_EXPIRED', message: 'Sign in', category: 'auth_required' }

describe('what a failed call means', () => {
  it.each([
    ['its number says invalid', remote(-32602), 'INVALID_INPUT', 'invalid_input'],
    ['its number says unknown method', remote(-32601), 'UNSUPPORTED', 'permanent'],
    ['its number says failed', remote(-32603), 'SERVER_ERROR', 'permanent'],
    ['its number says nothing', remote(4711), 'SERVER_ERROR', 'permanent'],
    ['it names a wait', remote(-32000, { retryAfterMs: 5 }), 'RATE_LIMIT_EXCEEDED', 'rate_limited'],
    ['its status says busy', remote(-32000, { retryAfterMs: 5 }, 503), 'SERVER_UNAVAILABLE', 'transient'],
    ['it is a problem', remote(-31000, told), 'AUTHENTICATION_REQUIRED', 'auth_required'],
    ['a problem is beside it', remote(-32602, { [problemExtension]: told }), 'AUTHENTICATION_REQUIRED', 'auth_required'],
    ['another number holds what looks like one', remote(-32602, told), 'INVALID_INPUT', 'invalid_input'],
    ['HTTP 401', http(401), 'AUTHENTICATION_REQUIRED', 'auth_required'],
    ['HTTP 403', http(403), 'PERMISSION_DENIED', 'permanent'],
    [
      'HTTP 403 for want of a scope',
      http(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }),
      'SCOPE_INSUFFICIENT',
      'auth_required',
    ],
    ['HTTP 413', http(413), 'PAYLOAD_TOO_LARGE', 'invalid_input'],
    ['HTTP 429', http(429), 'RATE_LIMIT_EXCEEDED', 'rate_limited'],
    ['HTTP 502', http(502), 'SERVER_UNAVAILABLE', 'transient'],
    ['HTTP 500', http(500), 'SERVER_ERROR', 'permanent'],
    ['a broken line', new ConnectionError('lost', 'gone'), 'SERVER_UNAVAILABLE', 'transient'],
    ['an answer that is none', new ConnectionError('protocol', 'no'), 'SERVER_ERROR', 'permanent'],
    ['no answer in time', new McpError('timeout', 'no'), 'OPERATION_TIMEOUT', 'transient'],
    ['an exception', new TypeError('x is not a function'), 'SERVER_ERROR', 'permanent'],
  ])('E11-3: %s', (_, error, code, category) => {
    expect(classify(error)).toMatchObject({ code, category })
  })

  it.each([
    ['7', 7_000],
    ['Thu, 01 Jan 1970 00:00:09 GMT', 9_000],
    ['soon', undefined],
  ])('E11-3: Retry-After: %s is a wait', (header, wait) => {
    expect(classify(http(503, { 'retry-after': header }), () => 0).retryAfter).toBe(wait)
  })
})
