/* bdp-stack-lwip runs lwIP's TCP on one host of bdp's lab, by the contract bdp.stack/1 (docs/stack-contract.md).
 *
 * lwIP is Debian's library, as its lwipopts.h configures it, called in one thread by its raw API. It asks sys_now() for the time, which is the
 * one below, and rand() for randomness, which has the seed of the case. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include <lwip/init.h>
#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <lwip/timeouts.h>

#define CONTROL 0 /* Messages, one each. */
#define ROOM 65536
#define PERIOD 251 /* The byte at a position of a stream is the remainder by this. */
#define ENDLESS INT64_MAX

enum state { IS_LISTENING, IS_CONNECTING, IS_OPEN, IS_CLOSED, IS_LOST };
static const char *const state_names[] = {"listening", "connecting", "open", "closed", "lost"};

struct report {
    enum state state;
    int64_t sent, received, cwnd;
    uint32_t crc;
    int ended;
};

struct stream {
    struct stream *next;
    int64_t id;
    struct tcp_pcb *pcb; /* NULL: lwIP has none any more. */
    struct report now, reported;
    int is_reported, nodelay, finish, finished, end_came;
    int64_t to_send, to_receive;
    struct pbuf *unread;
    u16_t unread_offset; /* Of its first buffer so many bytes were read. */
};

static struct stream *streams, **last_stream = &streams;
static struct netif link_;
static int packets; /* The socket of IP packets. */
static int64_t now_ns, packets_sent;
static int64_t send_buffer = TCP_SND_BUF, initial_window = 0;
static uint8_t pattern[ROOM + PERIOD];

/* In place of the library's: milliseconds of the last step's time. */
u32_t sys_now(void) { return (u32_t)(now_ns / 1000000); }

static ssize_t receive_message(int from, void *room) {
    ssize_t length;
    do
        length = read(from, room, ROOM);
    while (length < 0 && errno == EINTR);
    return length;
}

static void send_message(int to, const void *message, size_t length) {
    ssize_t sent;
    do
        sent = write(to, message, length);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        exit(1); /* There is nobody to say it to. */
}

static void answer(struct json_object *object) {
    size_t length;
    const char *text = json_object_to_json_string_length(object, JSON_C_TO_STRING_PLAIN, &length);
    send_message(CONTROL, text, length);
    json_object_put(object);
}

/* Says {"what": "text"} and ends. */
__attribute__((noreturn, format(printf, 2, 3))) static void end(const char *what, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, what, json_object_new_string(text));
    answer(object);
    exit(0);
}

#define unsupported(...) end("unsupported", __VA_ARGS__)
#define failed(...) end("failed", __VA_ARGS__)

static struct json_object *member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, name, &value);
    return value;
}

static int64_t integer(struct json_object *object, const char *name, int64_t absent) {
    struct json_object *value = member(object, name);
    return value ? json_object_get_int64(value) : absent;
}

static const char *text_of(struct json_object *object, const char *name) {
    struct json_object *value = member(object, name);
    return value ? json_object_get_string(value) : NULL;
}

/* The CRC of IEEE 802.3, going on from that of what was before. */
static uint32_t crc32_of(uint32_t crc, const uint8_t *bytes, size_t length) {
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++)
                table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
        }
    crc = ~crc;
    while (length-- > 0)
        crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
    return ~crc;
}

/* The link. */

static err_t output(struct pbuf *packet) {
    static uint8_t room[ROOM];
    u16_t length = pbuf_copy_partial(packet, room, packet->tot_len, 0);
    send_message(packets, room, length);
    packets_sent++;
    return ERR_OK;
}

static err_t output4(struct netif *netif, struct pbuf *packet, const ip4_addr_t *to) {
    LWIP_UNUSED_ARG(netif);
    LWIP_UNUSED_ARG(to);
    return output(packet);
}

static err_t output6(struct netif *netif, struct pbuf *packet, const ip6_addr_t *to) {
    LWIP_UNUSED_ARG(netif);
    LWIP_UNUSED_ARG(to);
    return output(packet);
}

static err_t link_init(struct netif *netif) {
    netif->name[0] = 'b';
    netif->name[1] = 'p';
    netif->mtu = (u16_t)(intptr_t)netif->state;
    netif->mtu6 = netif->mtu;
    netif->output = output4;
    netif->output_ip6 = output6;
    return ERR_OK;
}

static void input(const uint8_t *bytes, size_t length) {
    struct pbuf *packet = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);
    if (packet == NULL)
        failed("no memory");
    pbuf_take(packet, bytes, (u16_t)length);
    if (ip_input(packet, &link_) != ERR_OK)
        pbuf_free(packet);
}

static void add_address(struct json_object *pair) {
    ip_addr_t address;
    const char *text = json_object_get_string(json_object_array_get_idx(pair, 0));
    int prefix = json_object_get_int(json_object_array_get_idx(pair, 1));
    if (text == NULL || !ipaddr_aton(text, &address))
        failed("'%s' is no address", text ? text : "");
    if (IP_IS_V4(&address)) {
        ip4_addr_t mask = {lwip_htonl(prefix <= 0 ? 0 : 0xffffffffu << (32 - LWIP_MIN(prefix, 32)))};
        if (!ip4_addr_isany(netif_ip4_addr(&link_)))
            unsupported("more than one IPv4 address");
        netif_set_addr(&link_, ip_2_ip4(&address), &mask, ip_2_ip4(&address));
        return;
    }
    /* The first place is that of the link-local address. There are no neighbours to ask whether the address is theirs. */
    for (s8_t i = 1; i < LWIP_IPV6_NUM_ADDRESSES; i++)
        if (ip6_addr_isinvalid(netif_ip6_addr_state(&link_, i))) {
            netif_ip6_addr_set(&link_, i, ip_2_ip6(&address));
            netif_ip6_addr_set_state(&link_, i, IP6_ADDR_PREFERRED);
            return;
        }
    unsupported("more than %d IPv6 addresses", LWIP_IPV6_NUM_ADDRESSES - 1);
}

static void start(struct json_object *settings) {
    const char *contract = text_of(settings, "contract");
    if (contract == NULL || strcmp(contract, "bdp.stack/1") != 0)
        failed("the first message is no start of the contract bdp.stack/1");
    struct json_object *tcp = member(settings, "tcp");
    const char *congestion = text_of(tcp, "congestion"), *ecn = text_of(tcp, "ecn");
    if (congestion && strcmp(congestion, "reno") != 0)
        unsupported("the congestion control '%s' (it has reno)", congestion);
    if (json_object_get_boolean(member(tcp, "sack")))
        unsupported("SACK (Debian's library is built without)");
    if (json_object_get_boolean(member(tcp, "timestamps")))
        unsupported("timestamps (Debian's library is built without)");
    if (member(tcp, "window_scaling") && !json_object_get_boolean(member(tcp, "window_scaling")))
        unsupported("disabling window scaling");
    if (ecn && strcmp(ecn, "off") != 0)
        unsupported("ECN");
    /* Of the buffer that Linux is given, half becomes window. */
    if (integer(tcp, "receive_buffer_bytes", 2 * TCP_WND) / 2 < TCP_WND)
        unsupported("a receive window below %d bytes", TCP_WND);
    send_buffer = LWIP_MIN(send_buffer, integer(tcp, "send_buffer_bytes", send_buffer));
    initial_window = integer(tcp, "initial_window", 0);

    srand((unsigned)json_object_get_uint64(member(settings, "seed")));
    lwip_init();
    now_ns = 1000000000;
    if (sys_timeouts_sleeptime() != 0)
        failed("the library does not take its time from this program");
    now_ns = 0;
    int64_t mtu = integer(settings, "mtu", 1500);
    netif_add(&link_, NULL, NULL, NULL, (void *)(intptr_t)LWIP_MIN(mtu, 0xffff), link_init, ip_input);
    struct json_object *addresses = member(settings, "addresses");
    for (size_t i = 0; i < json_object_array_length(addresses); i++)
        add_address(json_object_array_get_idx(addresses, i));
    netif_set_default(&link_);
    netif_set_link_up(&link_);
    netif_set_up(&link_);
    link_.rs_count = 0; /* There is no router to ask. */

    struct json_object *ready = json_object_new_object(), *object = json_object_new_object();
    json_object_object_add(ready, "version", json_object_new_string("lwIP " LWIP_VERSION_STRING));
    json_object_object_add(object, "ready", ready);
    answer(object);
}

/* Connections. */

static void begin_sending(struct stream *s) {
    if (initial_window > 0)
        s->pcb->cwnd = (tcpwnd_size_t)(initial_window * s->pcb->mss);
}

static err_t arrived(void *argument, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error) {
    struct stream *s = argument;
    LWIP_UNUSED_ARG(pcb);
    LWIP_UNUSED_ARG(error);
    if (bytes == NULL)
        s->end_came = 1;
    else if (s->unread == NULL)
        s->unread = bytes;
    else
        pbuf_cat(s->unread, bytes);
    return ERR_OK;
}

/* lwIP has given the connection up; its block is gone. */
static void gone(void *argument, err_t error) {
    struct stream *s = argument;
    s->pcb = NULL;
    s->now.state = error == ERR_CLSD ? IS_CLOSED : IS_LOST;
}

static void adopt(struct stream *s, struct tcp_pcb *pcb) {
    s->pcb = pcb;
    tcp_arg(pcb, s);
    tcp_recv(pcb, arrived);
    tcp_err(pcb, gone);
    if (s->nodelay)
        tcp_nagle_disable(pcb);
}

static err_t connected(void *argument, struct tcp_pcb *pcb, err_t error) {
    LWIP_UNUSED_ARG(pcb);
    LWIP_UNUSED_ARG(error);
    begin_sending(argument);
    return ERR_OK;
}

static err_t accepted(void *argument, struct tcp_pcb *pcb, err_t error) {
    struct stream *s = argument;
    if (error != ERR_OK || pcb == NULL)
        return ERR_VAL;
    tcp_close(s->pcb); /* It awaits one connection, and this is it. */
    adopt(s, pcb);
    begin_sending(s);
    return ERR_OK;
}

/* "1.2.3.4:5" or "[::1]:5". */
static u16_t endpoint(struct json_object *wanted, const char *name, ip_addr_t *address) {
    char text[128];
    const char *given = text_of(wanted, name);
    snprintf(text, sizeof text, "%s", given ? given : "");
    char *port = strrchr(text, ':'), *host = text + (text[0] == '[');
    if (port != NULL)
        port[text[0] == '[' ? -1 : 0] = '\0';
    if (port == NULL || !ipaddr_aton(host, address))
        failed("'%s' is no address with a port", given ? given : "");
    return (u16_t)atoi(port + 1);
}

static void check(err_t error, const char *what) {
    if (error != ERR_OK)
        failed("lwIP can't %s: %s", what, lwip_strerr(error));
}

static void open_stream(int listen, struct json_object *wanted) {
    const char *congestion = text_of(wanted, "congestion");
    if (congestion && strcmp(congestion, "reno") != 0)
        unsupported("the congestion control '%s' (it has reno)", congestion);
    if (integer(wanted, "window_bytes", TCP_WND) < TCP_WND)
        unsupported("a receive window below %d bytes", TCP_WND);
    if (member(wanted, "mss_bytes"))
        unsupported("a segment size setting");
    struct stream *s = calloc(1, sizeof *s);
    struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);
    if (s == NULL || pcb == NULL)
        failed("no memory");
    *last_stream = s;
    last_stream = &s->next;
    s->id = integer(wanted, "socket", 0);
    s->nodelay = json_object_get_boolean(member(wanted, "nodelay"));
    if (listen) {
        check(tcp_bind(pcb, IP_ANY_TYPE, (u16_t)integer(wanted, "port", 0)), "bind");
        err_t error = ERR_OK;
        s->pcb = tcp_listen_with_backlog_and_err(pcb, 1, &error);
        check(error, "listen");
        tcp_arg(s->pcb, s);
        tcp_accept(s->pcb, accepted);
        s->now.state = IS_LISTENING;
    } else {
        ip_addr_t from, to;
        u16_t from_port = endpoint(wanted, "from", &from), to_port = endpoint(wanted, "to", &to);
        adopt(s, pcb);
        check(tcp_bind(pcb, &from, from_port), "bind");
        check(tcp_connect(pcb, &to, to_port, connected), "connect");
        s->now.state = IS_CONNECTING;
    }
}

static int64_t more(int64_t left, struct json_object *wanted) {
    struct json_object *bytes = member(wanted, "bytes");
    int64_t count = bytes ? json_object_get_int64(bytes) : ENDLESS;
    return count > ENDLESS - left ? ENDLESS : left + count;
}

static void command(const char *name, struct json_object *wanted) {
    if (strcmp(name, "listen") == 0 || strcmp(name, "connect") == 0) {
        open_stream(name[0] == 'l', wanted);
        return;
    }
    struct stream *s = streams;
    while (s != NULL && s->id != integer(wanted, "socket", -1))
        s = s->next;
    if (s == NULL)
        failed("there is no such socket for '%s'", name);
    if (strcmp(name, "send") == 0)
        s->to_send = more(s->to_send, wanted);
    else if (strcmp(name, "receive") == 0)
        s->to_receive = more(s->to_receive, wanted);
    else if (strcmp(name, "finish") == 0)
        s->finish = 1;
    else if (strcmp(name, "abort") != 0)
        failed("there is no command '%s'", name);
    else if (s->pcb != NULL && s->now.state == IS_LISTENING) {
        tcp_close(s->pcb);
        gone(s, ERR_ABRT);
    } else if (s->pcb != NULL)
        tcp_abort(s->pcb); /* Calls gone(). */
}

static void read_bytes(struct stream *s) {
    while (s->unread != NULL && s->to_receive > 0) {
        struct pbuf *first = s->unread;
        u16_t length = (u16_t)LWIP_MIN(s->to_receive, first->len - s->unread_offset);
        s->now.crc = crc32_of(s->now.crc, (uint8_t *)first->payload + s->unread_offset, length);
        s->now.received += length;
        s->unread_offset += length;
        if (s->to_receive != ENDLESS)
            s->to_receive -= length;
        if (s->unread_offset == first->len) {
            s->unread = first->next;
            if (s->unread != NULL)
                pbuf_ref(s->unread);
            pbuf_free(first);
            s->unread_offset = 0;
        }
        if (s->pcb != NULL)
            tcp_recved(s->pcb, length);
    }
    if (s->end_came && s->unread == NULL)
        s->now.ended = 1;
}

static void write_bytes(struct stream *s) {
    while (s->to_send > 0) {
        int64_t queued = TCP_SND_BUF - tcp_sndbuf(s->pcb);
        int64_t length = LWIP_MIN(s->to_send, LWIP_MIN(0xffff, send_buffer - queued));
        if (length <= 0 || tcp_write(s->pcb, pattern + s->now.sent % PERIOD, (u16_t)length, 0) != ERR_OK)
            break;
        s->now.sent += length;
        if (s->to_send != ENDLESS)
            s->to_send -= length;
    }
    if (s->finish && !s->finished && s->to_send == 0)
        s->finished = tcp_shutdown(s->pcb, 0, 1) == ERR_OK;
    else
        tcp_output(s->pcb);
}

/* Gives lwIP what it takes, and takes what it has, of each connection. */
static void exchange(void) {
    for (struct stream *s = streams; s != NULL; s = s->next) {
        read_bytes(s);
        if (s->pcb == NULL || s->pcb->state == LISTEN)
            continue;
        switch (s->pcb->state) {
        case SYN_SENT:
        case SYN_RCVD:
            s->now.state = IS_CONNECTING;
            continue;
        case TIME_WAIT: /* When lwIP frees its block, it says nothing. */
            tcp_arg(s->pcb, NULL);
            tcp_recv(s->pcb, NULL);
            tcp_err(s->pcb, NULL);
            gone(s, ERR_CLSD);
            continue;
        default:
            s->now.state = IS_OPEN;
            s->now.cwnd = s->pcb->cwnd;
        }
        if (s->pcb->state == ESTABLISHED || s->pcb->state == CLOSE_WAIT)
            write_bytes(s);
    }
}

static struct json_object *changed(void) {
    struct json_object *list = json_object_new_array();
    for (struct stream *s = streams; s != NULL; s = s->next) {
        struct report *a = &s->now, *b = &s->reported;
        if (s->is_reported && a->state == b->state && a->sent == b->sent && a->received == b->received && a->crc == b->crc &&
            a->ended == b->ended && a->cwnd == b->cwnd)
            continue;
        s->reported = s->now;
        s->is_reported = 1;
        struct json_object *report = json_object_new_object();
        json_object_object_add(report, "socket", json_object_new_int64(s->id));
        json_object_object_add(report, "state", json_object_new_string(state_names[a->state]));
        json_object_object_add(report, "sent_bytes", json_object_new_int64(a->sent));
        json_object_object_add(report, "received_bytes", json_object_new_int64(a->received));
        json_object_object_add(report, "received_crc", json_object_new_int64(a->crc));
        json_object_object_add(report, "ended", json_object_new_boolean(a->ended));
        if (a->state == IS_OPEN)
            json_object_object_add(report, "cwnd_bytes", json_object_new_int64(a->cwnd));
        json_object_array_add(list, report);
    }
    return list;
}

static void step(struct json_object *order) {
    static uint8_t room[ROOM];
    struct json_object *commands = member(order, "commands");
    now_ns = integer(order, "now_ns", now_ns);
    packets_sent = 0;
    for (size_t i = 0; commands != NULL && i < json_object_array_length(commands); i++) {
        json_object_object_foreach(json_object_array_get_idx(commands, i), name, wanted) {
            command(name, wanted);
            exchange();
        }
    }
    for (int64_t left = integer(order, "packets", 0); left > 0; left--) {
        ssize_t length = receive_message(packets, room);
        if (length <= 0)
            exit(0);
        input(room, (size_t)length);
        exchange();
    }
    u32_t sleep_ms;
    while ((sleep_ms = sys_timeouts_sleeptime()) == 0) {
        sys_check_timeouts();
        exchange();
    }
    struct json_object *done = json_object_new_object(), *object = json_object_new_object();
    json_object_object_add(done, "packets", json_object_new_int64(packets_sent));
    if (sleep_ms != SYS_TIMEOUTS_SLEEPTIME_INFINITE)
        json_object_object_add(done, "next_ns", json_object_new_int64((now_ns / 1000000 + sleep_ms) * 1000000));
    json_object_object_add(done, "sockets", changed());
    json_object_object_add(object, "done", done);
    answer(object);
}

int main(void) {
    static char room[ROOM + 1];
    /* What the library prints must not come among the packets. */
    packets = dup(STDOUT_FILENO);
    if (packets < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i % PERIOD);
    for (;;) {
        ssize_t length = receive_message(CONTROL, room);
        if (length <= 0)
            return length != 0;
        room[length] = '\0';
        struct json_object *message = json_tokener_parse(room);
        if (message == NULL)
            failed("this is no JSON: %.200s", room);
        if (json_object_is_type(message, json_type_string))
            return 0;
        if (member(message, "start") != NULL)
            start(member(message, "start"));
        else if (member(message, "step") != NULL)
            step(member(message, "step"));
        else
            failed("the contract does not have this: %.200s", room);
        json_object_put(message);
    }
}
