/** `/inbox`: events that servers pushed, and what became of them. */
import type { InboxRecord } from '../../../host/inbox/options.ts'
import { brief } from '../paint.ts'
import type { Command, Session } from '../session.ts'
import { timeText, whyLines } from '../words.ts'

const shown = 20

export const inbox: Command = {
  name: 'inbox',
  takes: '[replay SERVER EVENT]',
  about: 'events that woke the agent, or wait, or were given up',
  run: async (session, rest) => {
    const { host, screen } = session
    const [verb, server = '', eventId = ''] = rest.split(/\s+/)
    if (verb === 'replay') {
      const done = await host.inbox.replay(server, eventId)
      screen.line(done ? ' It is tried again.' : ' No event of that name was given up. Write /inbox replay SERVER EVENT.')
      return undefined
    }
    const records = (
      await Promise.all(host.servers.map(async ({ name }) => host.inbox.list({ server: name, limit: 1_000 })))
    ).flat()
    if (records.length === 0) screen.line(' No server has pushed anything yet.')
    for (const record of records.toSorted((a, b) => a.at - b.at).slice(-shown)) show(session, record)
    return undefined
  },
}

const marks = { waiting: 'warn', done: 'good', refused: 'bad', dead: 'bad' } as const

function show({ screen }: Session, { at, state, server, featureSet, eventId, inferenceId, attempts, why }: InboxRecord): void {
  const { paint } = screen
  const tried = attempts.length > 1 ? `, ${attempts.length} attempts` : ''
  screen.line(
    ` ${paint.dim(timeText(at))} ${paint[marks[state]](state.padEnd(7))} ${paint.name(`${server}/${featureSet}`)} ${paint.plain(brief(eventId, 60))} ${paint.dim(`${inferenceId}${tried}`)}`,
  )
  if (why !== undefined) for (const line of whyLines(paint, why)) screen.line(` ${line}`)
}
