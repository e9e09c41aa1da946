/** Signs in with the link's token, reads what the process is, and draws the page. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import type { Self } from '#contract'
import { ProblemError, request } from './api/client.ts'
import { applyTo } from './feed/apply.ts'
import { openFeed } from './feed/feed.ts'
import { App } from './frame/app.tsx'
import { SignIn } from './frame/sign-in.tsx'
import { createPageRouter } from './routes.tsx'
import './style.css'

const root = createRoot(document.getElementById('root') ?? document.body)

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: true,
      // A refusal stays one; only a process that does not respond is asked again.
      retry: (times, error) => times < 2 && error instanceof ProblemError && error.status === 0,
    },
  },
})

async function start(): Promise<void> {
  const token = /^#k=(.+)$/.exec(location.hash)?.[1]
  if (token !== undefined) {
    // Before anything else: the address bar, and whatever reads it, shall not keep the token.
    history.replaceState(null, '', location.pathname + location.search)
    await request('POST /session', { body: { token: decodeURIComponent(token) } })
  }
  draw(await request('GET /self'))
}

function draw(self: Self): void {
  client.setQueryData(['self'], self)
  const feed = openFeed()
  feed.listen(applyTo(client))
  const router = createPageRouter(self)
  root.render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App feed={feed}>
          <RouterProvider router={router} />
        </App>
      </QueryClientProvider>
    </StrictMode>,
  )
}

start().catch((error: unknown) => root.render(<SignIn error={error} />))
