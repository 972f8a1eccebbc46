// What the modules that scripts/apple checks use of Apple's C library, after its manual pages and the open sources of its
// headers (xnu: bsd/sys, bsd/netinet; Libinfo: netdb.h). In C, so that Swift sees it as it sees Apple's: a name that is a
// structure and a function, arrays as tuples, constants as numbers.
#pragma once

typedef unsigned int socklen_t;
typedef unsigned char sa_family_t;
typedef unsigned short in_port_t;
typedef unsigned short mode_t;
typedef unsigned int uid_t;
typedef unsigned int gid_t;
typedef int pid_t;
typedef unsigned int nfds_t;
typedef unsigned int sigset_t;
typedef long ssize_t;
typedef unsigned long size_t;

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 30
#define SOCK_STREAM 1
#define SOCK_SEQPACKET 5
#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2
#define SOL_SOCKET 0xffff
#define SOL_LOCAL 0
#define LOCAL_PEERPID 0x002
#define SO_REUSEADDR 0x0004
#define SO_KEEPALIVE 0x0008
#define SO_ERROR 0x1007
#define SO_NOSIGPIPE 0x1022
#define IPPROTO_TCP 6
#define IPPROTO_IPV6 41
#define IPV6_V6ONLY 27
#define TCP_NODELAY 0x01
#define TCP_KEEPALIVE 0x10
#define TCP_KEEPINTVL 0x101
#define TCP_KEEPCNT 0x102
#define TCP_NOTSENT_LOWAT 0x201

struct sockaddr { unsigned char sa_len; sa_family_t sa_family; char sa_data[14]; };
struct sockaddr_un { unsigned char sun_len; sa_family_t sun_family; char sun_path[104]; };
struct sockaddr_storage { unsigned char ss_len; sa_family_t ss_family; char __ss_pad1[6]; long long __ss_align; char __ss_pad2[112]; };
struct in6_addr { union { unsigned char __u6_addr8[16]; unsigned short __u6_addr16[8]; unsigned int __u6_addr32[4]; } __u6_addr; };
struct iovec { void *iov_base; size_t iov_len; };
struct msghdr {
    void *msg_name;
    socklen_t msg_namelen;
    struct iovec *msg_iov;
    int msg_iovlen;
    void *msg_control;
    socklen_t msg_controllen;
    int msg_flags;
};
int socket(int, int, int);
int bind(int, const struct sockaddr *, socklen_t);
int connect(int, const struct sockaddr *, socklen_t);
int listen(int, int);
int accept(int, struct sockaddr *, socklen_t *);
int getpeername(int, struct sockaddr *, socklen_t *);
int getsockname(int, struct sockaddr *, socklen_t *);
int getsockopt(int, int, int, void *, socklen_t *);
int setsockopt(int, int, int, const void *, socklen_t);
ssize_t recv(int, void *, size_t, int);
ssize_t send(int, const void *, size_t, int);
ssize_t sendmsg(int, const struct msghdr *, int);
int shutdown(int, int);
int getpeereid(int, uid_t *, gid_t *);
int inet_pton(int, const char *, void *);

// <netdb.h>
#define AI_PASSIVE 0x00000001
#define AI_NUMERICSERV 0x00001000
#define EAI_AGAIN 2
#define NI_MAXHOST 1025
#define NI_MAXSERV 32
#define NI_NUMERICHOST 0x00000002
#define NI_NUMERICSERV 0x00000008
struct addrinfo {
    int ai_flags;
    int ai_family;
    int ai_socktype;
    int ai_protocol;
    socklen_t ai_addrlen;
    char *ai_canonname;
    struct sockaddr *ai_addr;
    struct addrinfo *ai_next;
};
int getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
void freeaddrinfo(struct addrinfo *);
const char *gai_strerror(int);
int getnameinfo(const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int);

// <poll.h>
#define POLLIN 0x0001
#define POLLOUT 0x0004
struct pollfd { int fd; short events; short revents; };
int poll(struct pollfd *, nfds_t, int);

// <fcntl.h>, <unistd.h>, <sys/stat.h>
#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_NONBLOCK 0x00000004
#define O_NOFOLLOW 0x00000100
#define O_CREAT 0x00000200
#define O_TRUNC 0x00000400
#define O_EXCL 0x00000800
#define O_NOCTTY 0x00020000
#define O_DIRECTORY 0x00100000
#define O_CLOEXEC 0x01000000
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_DUPFD_CLOEXEC 67
#define FD_CLOEXEC 1
#define LOCK_EX 0x02
struct timespec { long tv_sec; long tv_nsec; };
struct stat {
    int st_dev;
    mode_t st_mode;
    unsigned short st_nlink;
    unsigned long long st_ino;
    uid_t st_uid;
    gid_t st_gid;
    int st_rdev;
    struct timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
    long long st_size, st_blocks;
    int st_blksize;
    unsigned int st_flags, st_gen;
    int st_lspare;
    long long st_qspare[2];
};
struct flock { long long l_start, l_len; int l_pid; short l_type, l_whence; };
int flock(int, int);
int stat(const char *, struct stat *);
int lstat(const char *, struct stat *);
int chmod(const char *, mode_t);
int fchmod(int, mode_t);
int fstat(int, struct stat *);
int unlink(const char *);
int rename(const char *, const char *);
int fsync(int);
uid_t geteuid(void);
int close(int);
int pipe(int *);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
char *strerror(int);
int ftruncate(int, long long);
typedef long long off_t;
// The names without _ are in Darwin.swiftinterface.
typedef enum { _CLOCK_REALTIME = 0, _CLOCK_MONOTONIC = 6 } clockid_t;
int clock_gettime(clockid_t, struct timespec *);

// <termios.h>
typedef unsigned long speed_t;
typedef unsigned long tcflag_t;
typedef unsigned char cc_t;
struct termios {
    tcflag_t c_iflag, c_oflag, c_cflag, c_lflag;
    cc_t c_cc[20];
    speed_t c_ispeed, c_ospeed;
};
#define B9600 9600
#define B19200 19200
#define B38400 38400
#define B57600 57600
#define B115200 115200
#define B230400 230400
#define CREAD 0x00000800
#define CLOCAL 0x00008000
#define CCTS_OFLOW 0x00010000
#define CRTS_IFLOW 0x00020000
#define CRTSCTS (CCTS_OFLOW | CRTS_IFLOW)
#define TCSANOW 0
#define TCIOFLUSH 3
int tcgetattr(int, struct termios *);
int tcsetattr(int, int, const struct termios *);
int tcflush(int, int);
int cfsetspeed(struct termios *, speed_t);
void cfmakeraw(struct termios *);

// <signal.h>
#define SIG_BLOCK 1
int sigfillset(sigset_t *);
int pthread_sigmask(int, const sigset_t *, sigset_t *);

// <errno.h>
#define ENODEV 19
#define EBUSY 16
#define EPROTONOSUPPORT 43
#define EPERM 1
#define ENOENT 2
#define EINTR 4
#define ENOMEM 12
#define EACCES 13
#define ENOTDIR 20
#define ENFILE 23
#define EMFILE 24
#define EPIPE 32
#define EAGAIN 35
#define EWOULDBLOCK EAGAIN
#define EINPROGRESS 36
#define ENOTSOCK 38
#define EPROTOTYPE 41
#define EAFNOSUPPORT 47
#define EADDRINUSE 48
#define EADDRNOTAVAIL 49
#define ENETDOWN 50
#define ENETUNREACH 51
#define ECONNABORTED 53
#define ECONNRESET 54
#define ENOBUFS 55
#define ETIMEDOUT 60
#define ECONNREFUSED 61
#define EHOSTDOWN 64
#define EHOSTUNREACH 65
