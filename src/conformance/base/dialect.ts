/** The early dialect that names its version under another key: bare lists, `tools/invoke`, `shutdown`. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, isFault } from '../calls.ts'
import { duplex, table } from '../define.ts'
import { fitsPattern, is, listIn, objectIn } from '../expectations.ts'
import { tool } from '../needs.ts'
import type { Scenario } from '../scenario.ts'
import { send, step } from '../steps.ts'

const row = table('base/dialect/', { proves: ['dialect mcpVersion 2025-06-18'], revisions: ['s3'] })
const invoke = (name: string) => step(x => x.ask('tools/invoke', { name, arguments: {} }), tool(name))

/** What a server that speaks the dialect must do. */
export const dialectScenarios: readonly Scenario[] = [
  row('hello', 'the handshake of the dialect names the server and what it supports').by({ open: { fresh: true } }, [
    step(({ peer }) => peer.hello).expect({
      'server must have a name': hello => is.string(objectIn(hello, 'server').name),
      'serverCapabilities must be an object': hello => isRecord(hello?.serverCapabilities),
    }),
  ]),
  row('list', 'tools are a bare list of names, descriptions and schemas').by([
    send('tools/list').expect({
      'the result must be a bare list': ({ answer }) => Array.isArray(answer.result),
      'every tool must have a name and an inputSchema': ({ answer }) =>
        listIn(answer.result).every(one => fitsPattern({ name: is.string, inputSchema: isRecord }, one)),
    }),
  ]),
  row('invoke', 'a tool is invoked, and answers with a status and an output').by([
    invoke('test_simple_text').expect({
      'status must be "success"': hasResult({ status: 'success' }),
      'there must be an output': ({ result }) => 'output' in result,
    }),
  ]),
  row('error', 'a tool that fails answers with another status').by([
    invoke('test_error_handling').expect({
      'status must say that it failed': ({ answer, result }) => answer.error === undefined && result.status !== 'success',
    }),
  ]),
  row('invalid-arguments', 'arguments that do not fit are error 4001').by([
    invoke('greet').expect({ 'arguments that do not fit must be refused with error 4001': hasCode(4001) }),
  ]),
  row('unknown-tool', 'a tool that does not exist is refused').by([
    send('tools/invoke', { name: 'vivarium-no-such-tool', arguments: {} }).expect({
      'an unknown tool must be refused with error -32602': hasCode(-32602),
    }),
  ]),
  row('progress', 'progress is reported in percent, by the id of the request').by(
    { carriers: duplex, needs: [tool('test_tool_with_progress')] },
    async x => {
      const { answer } = await x.ask('tools/invoke', { name: 'test_tool_with_progress', arguments: {} })
      const steps = x.peer.heard('progress')
      x.expect(steps.length > 0, 'there must be progress')
      for (const one of steps) {
        const { id, percent } = objectIn(one.value, 'params')
        x.expect(id === answer.id, 'progress must name the request by its id', [one])
        const isPercent = typeof percent === 'number' && percent >= 0 && percent <= 100
        x.expect(isPercent, 'percent must be from 0 to 100', [one])
      }
    },
  ),
  row('cancel', 'a cancelled request is answered as cancelled').by(
    { carriers: duplex, needs: [tool('slow_compute')] },
    async x => {
      const begun = x.peer.begin('tools/invoke', { name: 'slow_compute', arguments: { seconds: 20 } }, { ms: 5_000 })
      await x.peer.settled()
      await x.peer.notify('cancel', { id: begun.id })
      const { result, frame } = await begun.answer
      x.expect(objectIn(result).status === 'cancelled', 'status must be "cancelled"', [frame])
    },
  ),
  row('shutdown', 'shutdown is answered with null, and nothing is served after it').by(
    { carriers: duplex, open: { fresh: true } },
    [
      send('shutdown').expect({ 'the result of shutdown must be null': ({ answer }) => answer.result === null }),
      send('tools/list').expect({ 'nothing must be served after shutdown': isFault }),
      step(x => x.peer.notify('exit')),
    ],
  ),
]
