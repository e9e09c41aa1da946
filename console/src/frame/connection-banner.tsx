/** Says that the process is away, since when, and that the page comes back by itself. Data of before stays, in grey. */
import { type ReactNode, useEffect, useState } from 'react'
import { useFeed } from '../feed/feed.ts'
import { timeText, useNow } from '../parts/time.tsx'
import { useConsole } from './context.ts'

/** A short cut, such as a restart of the stream, is not worth a banner. */
const graceMs = 1500

/** Whether the stream has been away long enough to say so. */
export function useDisconnected(): boolean {
  const { feed } = useConsole()
  const { status } = useFeed(feed)
  const away = status !== 'live'
  const [long, setLong] = useState(false)
  useEffect(() => {
    if (!away) return setLong(false)
    const timer = setTimeout(() => setLong(true), graceMs)
    return () => clearTimeout(timer)
  }, [away])
  return away && long
}

export function ConnectionBanner(): ReactNode {
  const { self, feed } = useConsole()
  const disconnected = useDisconnected()
  const { lastAt } = useFeed(feed)
  const now = useNow()
  if (disconnected) {
    const seconds = Math.max(0, Math.round((now - lastAt) / 1000))
    return (
      <p role="status" className="border-b border-warn-line bg-warn-soft px-4 py-2 text-warn">
        <strong>Disconnected</strong>
        {`, last data from ${timeText(lastAt)} (${seconds} s ago). `}
        The page reconnects automatically.
      </p>
    )
  }
  if (self.version !== __VERSION__) {
    return (
      <p role="status" className="border-b border-warn-line bg-warn-soft px-4 py-2 text-warn">
        This page is of version {__VERSION__}, the process of version {self.version}. Reload the page.
      </p>
    )
  }
  return null
}
