/*
 * Makes short connections for a given time, or connections that stay open: the load with which bench/recording.py
 * measures a recorder.
 *
 *     connections bare ADDRESS PORT            answers each request with RESPONSE_BYTES and closes the connection
 *     connections ask ADDRESS PORT SECONDS     sends one request after the other; prints the number of responses
 *     connections turns ADDRESS PORT SECONDS PID PID [tls | tls-again]
 *         sends batches of requests alternately to the servers at PORT and PORT + 1, which are these processes: first,
 *         second, second, first, and so on; prints for each batch the CPU time of this process, the CPU time of the
 *         server, and the wall-clock time, in ns. The request is "/page" over HTTP 1.0, so that any web server with
 *         RESPONSE_BYTES at this path can be used
 *     connections keep ADDRESS PORT            accepts connections and keeps them open
 *     connections hold ADDRESS PORT COUNT      opens COUNT connections, prints "open", and exits when stdin is closed
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_BYTES 200
#define RESPONSE_BYTES 4000

/* A request similar to that of a browser, padded to its size. The server closes the connection after it. */
static const char ASKED[] = "GET /page HTTP/1.0\r\nHost: server\r\nUser-Agent: ";
static const char END[] = "\r\n\r\n";
static char request[REQUEST_BYTES];

/*
 * Requests per batch. A batch takes a few milliseconds, so that a disturbance of the machine lasts longer than a batch
 * and affects both servers.
 */
#define TURN 32

/* Order of the servers; each is first as often as second. */
static const int ORDER[] = { 0, 1, 1, 0 };
#define TURNS (sizeof(ORDER) / sizeof(ORDER[0]))

static char buffer[65536];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address_of(char **words)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(words[3])) };

	if (inet_pton(AF_INET, words[2], &address.sin_addr) != 1)
		fail(words[2]);
	return address;
}

static int listen_at(const struct sockaddr_in *address)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (listener < 0 || bind(listener, (const void *)address, sizeof(*address)) || listen(listener, 4096))
		fail("listen");
	return listener;
}

static int connect_to(const struct sockaddr_in *address)
{
	int connection = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	/* As in browsers: a returning client sends the end of the handshake and the request without delay. */
	setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connection < 0 || connect(connection, (const void *)address, sizeof(*address)))
		fail("connect");
	return connection;
}

static long long now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void serve(int listener, int keeps)
{
	for (;;) {
		int connection = accept(listener, NULL, NULL);

		if (connection < 0)
			fail("accept");
		if (keeps)
			continue;
		if (read(connection, buffer, REQUEST_BYTES) > 0 && write(connection, buffer, RESPONSE_BYTES) < 0)
			fail("write");
		close(connection);
	}
}

/* Declarations of OpenSSL 3, whose library is also installed on systems without its headers. */
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;
const void *TLS_client_method(void);
SSL_CTX *SSL_CTX_new(const void *method);
SSL *SSL_new(SSL_CTX *context);
int SSL_set_fd(SSL *ssl, int fd);
int SSL_connect(SSL *ssl);
int SSL_read(SSL *ssl, void *buffer, int bytes);
int SSL_write(SSL *ssl, const void *buffer, int bytes);
void SSL_free(SSL *ssl);
typedef struct ssl_session_st SSL_SESSION;
SSL_SESSION *SSL_get1_session(SSL *ssl);
void SSL_SESSION_free(SSL_SESSION *session);
int SSL_set_session(SSL *ssl, SSL_SESSION *session);
int SSL_session_reused(const SSL *ssl);
void SSL_set_shutdown(SSL *ssl, int how);
#define SSL_SENT_SHUTDOWN 1

/*
 * `comes_again`: the client presents the session ticket of its previous connection, so that no signature is needed
 * (RFC 8446, section 2.2).
 */
static int is_encrypted, comes_again;

/* Sends a request over TLS, without verifying the server's certificate. */
static ssize_t ask_encrypted(int connection, SSL_SESSION **ticket)
{
	static SSL_CTX *context;
	ssize_t received, all = 0;
	SSL *ssl;

	if (!context)
		context = SSL_CTX_new(TLS_client_method());
	ssl = SSL_new(context);
	if (!ssl || !SSL_set_fd(ssl, connection) || (*ticket && !SSL_set_session(ssl, *ticket)) || SSL_connect(ssl) != 1 ||
	    SSL_write(ssl, request, REQUEST_BYTES) <= 0)
		fail("TLS");
	if (*ticket && !SSL_session_reused(ssl))
		fail("the session ticket is not accepted");
	while ((received = SSL_read(ssl, buffer, sizeof(buffer))) > 0)
		all += received;
	/* Waits until the server closes, so that TIME-WAIT is on its side; this client would run out of ports. */
	while (read(connection, buffer, sizeof(buffer)) > 0)
		;
	if (comes_again) {
		SSL_SESSION_free(*ticket);
		*ticket = SSL_get1_session(ssl);
		/* Otherwise OpenSSL treats the connection as truncated and invalidates the session ticket. */
		SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN);
	}
	SSL_free(ssl);
	return all;
}

static ssize_t ask_plainly(int connection)
{
	ssize_t received, all = 0;

	if (write(connection, request, REQUEST_BYTES) < 0)
		fail("write");
	while ((received = read(connection, buffer, sizeof(buffer))) > 0)
		all += received;
	return all;
}

static void ask_once(const struct sockaddr_in *address, SSL_SESSION **ticket)
{
	int connection = connect_to(address);
	ssize_t all = is_encrypted ? ask_encrypted(connection, ticket) : ask_plainly(connection);

	/* The response of a web server is larger, because it includes headers. */
	if (all < RESPONSE_BYTES)
		fail("answer");
	close(connection);
}

static void ask(const struct sockaddr_in *address, double seconds)
{
	long long end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(1e9 * seconds);
	long answered = 0;

	for (; now_ns(CLOCK_MONOTONIC) < end_ns; answered++)
		ask_once(address, NULL);
	printf("%ld\n", answered);
}

/* CPU time and wall-clock time used until now. */
struct used {
	long long client_ns, server_ns, clock_ns;
};

static struct used used(clockid_t server)
{
	return (struct used){
		.client_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID),
		.server_ns = now_ns(server),
		.clock_ns = now_ns(CLOCK_MONOTONIC),
	};
}

static void ask_in_turns(const struct sockaddr_in *first, double seconds, char **processes)
{
	struct sockaddr_in both[2] = { *first, *first };
	long long end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(1e9 * seconds);
	SSL_SESSION *tickets[2] = { NULL };
	clockid_t servers[2];

	for (int which = 0; which < 2; which++)
		if (clock_getcpuclockid(atoi(processes[which]), &servers[which]))
			fail(processes[which]);
	both[1].sin_port = htons(ntohs(first->sin_port) + 1);
	while (now_ns(CLOCK_MONOTONIC) < end_ns) {
		for (size_t turn = 0; turn < TURNS; turn++) {
			int which = ORDER[turn];

			struct used before = used(servers[which]), after;

			for (int number = 0; number < TURN; number++)
				ask_once(&both[which], &tickets[which]);
			after = used(servers[which]);
			printf("%lld %lld %lld\n", after.client_ns - before.client_ns, after.server_ns - before.server_ns,
			       after.clock_ns - before.clock_ns);
		}
	}
}

static void hold(const struct sockaddr_in *address, int count)
{
	for (int number = 0; number < count; number++)
		connect_to(address);
	puts("open");
	fflush(stdout);
	while (read(0, buffer, sizeof(buffer)) > 0)
		;
}

int main(int count, char **words)
{
	struct rlimit files;
	struct sockaddr_in address;

	if (count < 4)
		return 2;
	memset(request, 'x', REQUEST_BYTES);
	memcpy(request, ASKED, strlen(ASKED));
	memcpy(request + REQUEST_BYTES - strlen(END), END, strlen(END));
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	address = address_of(words);
	if (!strcmp(words[1], "bare") || !strcmp(words[1], "keep"))
		serve(listen_at(&address), words[1][0] == 'k');
	else if (count > 4 && !strcmp(words[1], "ask"))
		ask(&address, atof(words[4]));
	else if (count > 6 && !strcmp(words[1], "turns")) {
		is_encrypted = count > 7;
		comes_again = is_encrypted && !strcmp(words[7], "tls-again");
		ask_in_turns(&address, atof(words[4]), words + 5);
	} else if (count > 4 && !strcmp(words[1], "hold"))
		hold(&address, atoi(words[4]));
	else
		return 2;
	return 0;
}
