/** Says to screen readers that something waits for an answer. Other news is on the screens, and would only interrupt. */
import { type ReactNode, useEffect, useState } from 'react'
import { spellOut } from '../parts/text.tsx'
import { useConsole } from './context.ts'

/** A flood of questions is one sentence. */
const longest = 200

export function Announcer(): ReactNode {
  const { feed } = useConsole()
  const [words, setWords] = useState('')
  const [opened] = useState(Date.now)
  useEffect(
    () =>
      feed.listen(events => {
        const asked = events.filter(({ event, data }) => event === 'approval' && data.since > opened)
        const last = asked.at(-1)
        if (last?.event !== 'approval') return
        const { tool, server, text } = last.data
        const first = `Approval requested: ${tool ?? server}. ${spellOut(text).slice(0, longest)}`
        setWords(asked.length > 1 ? `${asked.length} approvals requested. ${first}` : first)
      }),
    [feed, opened],
  )
  return (
    <div aria-live="assertive" className="sr-only">
      {words}
    </div>
  )
}
