/** Tools of feature sets: scopes and state (MCP Live §7, §8). */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Called } from '../extensions/talk.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringingSet, live, objectIn, setNamed } from './scenario-of.ts'

const acting = bringingSet('scope')
const hosted = bringingSet('hoststate')
const kept = bringingSet('checkpoint')

const stateOf = ({ result }: Called): Json => objectIn(result, 'state')

export const stateScenarios: readonly Scenario[] = [
  live({
    id: 'L7.4-1',
    also: ['L7.3-1', 'L6.5-1', 'L7.1-1'],
    title: 'Outside of the whitelist it asks before it acts, with a label; on the whitelist it does not ask',
    tools: { acting },
    run: async ({ host, tools: { acting }, sets, expect }) => {
      const set = String(setNamed(acting.listed, 'scope'))
      expect(sets.get(set)?.['scoped'] === true, 'A set whose tools ask for scopes is not declared scoped')
      const asked = await host.call(acting.name, acting.args)
      const said = await host.next('scope/elevate')
      const scope = objectIn(said?.params, 'scope')
      expect(
        said?.params['featureSet'] === set && typeof scope['label'] === 'string' && said.id !== undefined,
        'It does not ask for leave with its set and a label',
        [...asked.frames, said?.frame],
      )
      expect(scope['payload'] === undefined || isRecord(scope['payload']), 'payload is no object', [said?.frame])
      expect(!asked.isError, 'What was approved was not done', asked.frames)
      const label = String(scope['label'])
      await host.select({ enabled: [...sets.keys()], disabled: [], scopes: { [set]: { whitelist: [label] } } })
      const before = host.said.length
      const free = await host.call(acting.name, acting.args)
      expect(
        !free.isError && host.said.slice(before).every(({ method }) => method !== 'scope/elevate'),
        'It asks for what is on the whitelist',
        free.frames,
      )
      await host.select({
        enabled: [...sets.keys()],
        disabled: [],
        scopes: { [set]: { whitelist: [label], blacklist: [label] } },
      })
      host.answer('scope/elevate', () => ({ approved: false, reason: 'on the blacklist' }))
      const barred = await host.call(acting.name, acting.args)
      expect(barred.isError, 'What is on the blacklist was done without asking', barred.frames)
    },
  }),
  live({
    id: 'L7.7-2',
    title: 'What was not approved is not done, and the tool fails with the reason',
    tools: { acting },
    run: async ({ host, tools: { acting }, expect }) => {
      host.answer('scope/elevate', () => ({ approved: false, reason: 'Not on my watch' }))
      const denied = await host.call(acting.name, acting.args)
      expect(
        denied.isError && denied.text.includes('Not on my watch'),
        'A tool that was denied does not fail with the reason',
        denied.frames,
      )
      expect(denied.result['structuredContent'] === undefined, 'A tool that was denied has a result', denied.frames)
      host.answer('scope/elevate', () => ({ approved: 'yes' }))
      const odd = await host.call(acting.name, acting.args)
      expect(odd.isError, 'An answer that is no clear yes was taken for one', odd.frames)
    },
  }),
  live({
    id: 'L7.7-1',
    title: 'What the host has put on the call it has judged itself',
    tools: { acting },
    run: async ({ host, tools: { acting }, expect }) => {
      const asked = await host.call(acting.name, acting.args)
      const said = await host.next('scope/elevate')
      expect(said !== undefined, 'It does not ask for leave', asked.frames)
      const before = host.said.length
      const scoped = await host.call(acting.name, acting.args, { scope: said?.params['scope'] })
      const again = host.said.slice(before).filter(({ method }) => method === 'scope/elevate')
      expect(!scoped.isError && again.length === 0, 'It asks for a scope that came with the call', scoped.frames)
    },
  }),
  live({
    id: 'L8.2-1',
    also: ['L8.3-1', 'L8.4-3'],
    title:
      'State that the host keeps: a checkpoint, what it follows, and the data or a patch; computed from what came with the call',
    tools: { hosted },
    run: async ({ host, tools: { hosted }, sets, expect }) => {
      const set = sets.get(String(setNamed(hosted.listed, 'hoststate')))
      expect(set?.['hostState'] === true, 'A set whose state the host keeps is not declared hostState')
      const first = await host.call(hosted.name, hosted.args)
      const one = stateOf(first)
      expect(
        typeof one['checkpoint'] === 'string' && one['parent'] === null,
        'The first result has no checkpoint with parent null',
        first.frames,
      )
      expect(one['data'] !== undefined, 'The first result has no data', first.frames)
      const second = await host.call(hosted.name, hosted.args, {
        state: one['data'],
        _meta: { 'dev.vivarium/live': { state: one['data'], parent: one['checkpoint'] } },
      })
      const two = stateOf(second)
      expect(
        typeof two['checkpoint'] === 'string' && two['checkpoint'] !== one['checkpoint'],
        'Two states share a checkpoint',
        second.frames,
      )
      expect(two['data'] !== undefined || Array.isArray(two['patch']), 'A result has neither data nor patch', second.frames)
      const again = await host.call(hosted.name, hosted.args)
      expect(
        JSON.stringify(stateOf(again)['data']) === JSON.stringify(one['data']),
        'A call without state was computed from an earlier one',
        again.frames,
      )
    },
  }),
  live({
    id: 'L8.6-1',
    also: ['L8.2-1'],
    title: 'Going back to a checkpoint says whether it succeeded',
    tools: { kept },
    run: async ({ host, tools: { kept }, sets, expect }) => {
      const set = String(setNamed(kept.listed, 'checkpoint'))
      expect(sets.get(set)?.['rollback'] === true, 'A set that goes back is not declared rollback')
      const first = await host.call(kept.name, kept.args)
      const { checkpoint, parent, data } = stateOf(first)
      expect(
        typeof checkpoint === 'string' && parent === null,
        'The first result has no checkpoint with parent null',
        first.frames,
      )
      expect(data === undefined, 'State that the server keeps was given away', first.frames)
      const second = await host.call(kept.name, kept.args, { checkpoint, _meta: { 'dev.vivarium/live': { checkpoint } } })
      expect(stateOf(second)['parent'] === checkpoint, 'A result does not follow the checkpoint of its call', second.frames)
      const back = await host.request('state/rollback', { featureSet: set, checkpoint })
      expect(
        back.result['checkpoint'] === checkpoint && typeof back.result['success'] === 'boolean',
        'A rollback does not name checkpoint and success',
        back.frames,
      )
      expect(
        back.result['success'] === true || typeof back.result['reason'] === 'string',
        'A rollback failed without a reason',
        back.frames,
      )
    },
  }),
  live({
    id: 'L8.8-1',
    also: ['LA-1'],
    title: 'A checkpoint that is not there is refused with the number for it, naming the checkpoint',
    tools: { kept },
    run: async ({ host, tools: { kept }, expect, modern }) => {
      const checkpoint = 'no-such-checkpoint'
      const back = await host.request('state/rollback', { featureSet: setNamed(kept.listed, 'checkpoint'), checkpoint })
      expect(back.code === (modern ? -31005 : -32005), 'An unknown checkpoint is not refused with its number', back.frames)
      expect(
        objectIn(back.answer.error, 'data')['checkpoint'] === checkpoint,
        'The refusal does not name the checkpoint',
        back.frames,
      )
    },
  }),
]
