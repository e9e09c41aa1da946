/** Gives the screens the process as it is now, and shows the sign-in page when the session has ended. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useMemo } from 'react'
import { ProblemError, request } from '../api/client.ts'
import type { Feed } from '../feed/feed.ts'
import { ConsoleState } from './context.ts'
import { SignIn } from './sign-in.tsx'

/** How often a page notices that its session has ended, where the stream does not say so. */
const lookMs = 60_000

export function App({ feed, children }: { readonly feed: Feed; readonly children: ReactNode }): ReactNode {
  const { data: self, error } = useQuery({
    queryKey: ['self'],
    queryFn: ({ signal }) => request('GET /self', { signal }),
    refetchInterval: lookMs,
  })
  const state = useMemo(() => self && { self, feed }, [self, feed])
  if (error instanceof ProblemError && error.status === 401) return <SignIn error={error} />
  return state && <ConsoleState value={state}>{children}</ConsoleState>
}
