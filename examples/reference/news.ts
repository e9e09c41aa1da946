/** Events, and changes of what is offered. */
import type { Registration, Server } from 'vivarium/server'
import { z } from 'zod'
import { shows, showsTo } from './shows.ts'

const note = z.object({ level: z.enum(['low', 'high']), text: z.string().meta({ examples: ['Fish'] }) })

export function addNews(server: Server): void {
  const noted = server.event('note_added', { description: 'Somebody noted something', payload: note })
  server.tool(
    'add_note',
    {
      description: 'Makes the event note_added happen',
      input: note,
      undo: { tool: 'remove_note', arguments: ({ args }) => args },
      meta: shows('event:note_added'),
    },
    async payload => `Emitted ${await noted.emit(payload, { hint: { tool: 'greet', reason: 'To be polite' } })}`,
  )
  server.tool('remove_note', { description: 'Takes a note back', input: note, idempotent: true }, () => 'Removed')
  const secret = server.event('ticket_archived', {
    description: 'Only for those who may archive',
    payload: note,
    scopes: ['tickets:write'],
  })
  server.tool(
    'tell_archivists',
    {
      description: 'Makes the event ticket_archived happen',
      input: note,
      meta: showsTo(['tickets:write'], 'event:ticket_archived'),
    },
    async payload => `Emitted ${await secret.emit(payload)}`,
  )
  addChanging(server)
}

function addChanging(server: Server): void {
  let round = 0
  let added: readonly Registration<never>[] = []
  server.tool('rearrange', { description: 'Puts two other tools in the place of two', meta: shows('change:tools') }, () => {
    for (const one of added) one.remove()
    const name = `extra_${++round}`
    added = [`${name}_left`, `${name}_right`].map(each => server.tool(each, { description: 'Comes and goes' }, () => 'Here'))
    return name
  })
  let version = 1
  const shaky = server.tool('shaky', { description: 'Version 1', confirm: { message: 'Call it?' } }, () => 'Called')
  server.tool('shake', { description: 'Changes the tool shaky', meta: shows('change:tool:shaky') }, () => {
    shaky.update({ description: `Version ${++version}` })
    return `Version ${version}`
  })
}
